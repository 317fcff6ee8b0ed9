#!/usr/bin/env python3
"""Judge the partitioner by XLA's CPU runtime: the original program on one device against the partitioned one on N.

    check_on_xla.py GSPMD FILE.hlo [--seed S] [-v]

Inputs are small dyadic values, indices in a small range; padding of uneven shards is poisoned. A result agrees where
|N - 1| <= 2e-4 * max|1| (floats; 2e-2 for bf16 and f16) or exactly (all else). Exit code 1 on a difference.
"""

import os
import re
import subprocess
import sys
import tempfile

import numpy as np

GSPMD, FILE = sys.argv[1], sys.argv[2]
SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
VERBOSE = "-v" in sys.argv


def tile_of_device(text, rank, n):
    """For each device its tile index along each dimension, and the number of tiles along each."""
    m = re.search(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))", text)
    if m is None:
        return np.zeros((n, rank), int), [1] * rank
    dims = [int(x) for x in m[1].split(",")]
    if m[2]:
        shape = [int(x) for x in m[2].split(",")]
        ids = np.arange(np.prod(shape)).reshape(shape)
        if m[3]:
            ids = ids.transpose([int(x) for x in m[3].split(",")])
        ids = ids.reshape(dims)
    else:
        ids = np.array([int(x) for x in m[4].split(",")]).reshape(dims)
    out = np.zeros((n, rank), int)
    for index, device in np.ndenumerate(ids):
        out[device] = index[:rank]
    return out, dims[:rank]


def split_tuple(text):
    parts, depth, start = [], 0, 1
    for k, ch in enumerate(text):
        depth += ch == "{"
        depth -= ch == "}"
        if ch == "," and depth == 1:
            parts.append(text[start:k].strip())
            start = k + 1
    parts.append(text[start:-1].strip())
    return parts


def sharding_text(line):
    at = line.find("sharding={")
    if at < 0:
        return "{replicated}"
    at += len("sharding=")
    depth = 0
    for k in range(at, len(line)):
        depth += line[k] == "{"
        depth -= line[k] == "}"
        if depth == 0:
            return line[at : k + 1]
    return "{replicated}"


def interface(path):
    """Shardings of entry parameters and result leaves, from a completed program."""
    params, root, entry = {}, None, False
    for line in open(path):
        if line.startswith("ENTRY"):
            entry = True
        if not entry:
            continue
        m = re.search(r" parameter\((\d+)\)", line)
        if m:
            params[int(m[1])] = sharding_text(line)
        if line.startswith("  ROOT"):
            root = sharding_text(line)
    results = split_tuple(root) if root.startswith("{{") or root == "{}" else [root]
    return [params[k] for k in sorted(params)], results


def main():
    with tempfile.TemporaryDirectory() as d:
        out, completed = os.path.join(d, "out.hlo"), os.path.join(d, "completed.hlo")
        subprocess.run([GSPMD, "partition", FILE, "-o", out, "--quiet"], check=True)
        subprocess.run(
            [GSPMD, "partition", FILE, "-o", completed, "--quiet", "--stop-after=propagate"],
            check=True,
        )
        text = open(out).read()
        params, results = interface(completed)
    n = int((re.search(r"num_partitions=(\d+)", text.split("\n")[0]) or [0, 1])[1])
    sys.argv = ["run_partitioned.py", FILE, str(n)]
    sys.path.insert(
        0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
    )
    import run_partitioned as rp

    # Prepare both: the original as a one-device program.
    one_text, one_params, one_results = rp.prepare(open(FILE).read(), 1)
    n_text, n_params, n_results = rp.prepare(text, n)
    rng = np.random.default_rng(SEED)
    globals_, args = [], []
    for k, s in enumerate(one_params):
        dt, dims = rp.DT[s.dtype] if hasattr(s, "dtype") else rp.DT[s.type], list(s.dims)
        kind = np.dtype(dt).kind
        if kind == "b":
            v = rng.integers(0, 2, dims).astype(bool)
        elif kind in "iu":
            v = rng.integers(0, 4, dims).astype(dt)
        elif kind == "c":
            v = (rng.integers(-4, 5, dims) / 4 + 1j * rng.integers(-4, 5, dims) / 4).astype(dt)
        else:
            v = (rng.integers(-4, 5, dims) / 8).astype(dt)
        globals_.append(v)
        tiles, counts = tile_of_device(
            params[k] if k < len(params) else "{replicated}", len(dims), n
        )
        local = [-(-x // c) for x, c in zip(dims, counts)]
        poison = np.nan if kind in "fcV" else (np.iinfo(dt).max if kind in "iu" else True)
        per = []
        for dev in range(n):
            block = np.full(local, poison, dt)
            src = tuple(
                slice(min(t * b, x), min((t + 1) * b, x))
                for t, b, x in zip(tiles[dev], local, dims)
            )
            piece = v[src]
            block[tuple(slice(0, e) for e in piece.shape)] = piece
            per.append(block)
        args.append(per)
    ones = rp.execute(one_text, [[g] for g in globals_], 1)
    many = rp.execute(n_text, args, n)
    bad = 0
    for k, s in enumerate(one_results):
        want = np.asarray(ones[k][0])
        tiles, counts = tile_of_device(
            results[k] if k < len(results) else "{replicated}", want.ndim, n
        )
        local = [-(-x // c) for x, c in zip(want.shape, counts)]
        worst, where = 0.0, None
        scale = (
            float(
                np.max(
                    np.abs(
                        np.nan_to_num(
                            want.astype(np.complex128 if want.dtype.kind == "c" else np.float64)
                        )
                    ),
                    initial=0.0,
                )
            )
            if want.dtype.kind != "b"
            else 1
        )
        for dev in range(n):
            src = tuple(
                slice(min(t * b, x), min((t + 1) * b, x))
                for t, b, x in zip(tiles[dev], local, want.shape)
            )
            w = want[src]
            g = np.asarray(many[k][dev])[tuple(slice(0, e) for e in w.shape)]
            if want.dtype.kind in "biu":
                diff = float(np.sum(g != w))
            else:
                wide = np.complex128 if want.dtype.kind == "c" else np.float64
                a, b = g.astype(wide), w.astype(wide)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                delta = np.where(same, 0, np.abs(a - b))
                diff = float(np.max(np.where(np.isnan(delta), np.inf, delta), initial=0.0))
            if not diff <= worst:
                worst, where = diff, dev
        tolerance = (
            0
            if want.dtype.kind in "biu"
            else (2e-2 if want.dtype.itemsize == 2 else 2e-4) * max(scale, 1e-30)
        )
        ok = worst <= tolerance
        bad += not ok
        if VERBOSE or not ok:
            print(
                f"  result {k} {want.dtype}{list(want.shape)} {results[k]}: {'ok' if ok else 'DIFFERS'} by {worst:.3g} of {scale:.3g} (device {where})"
            )
    print(
        f"{os.path.basename(FILE)}: {'agrees' if not bad else 'DIFFERS'}: {len(one_results)} results, {bad} differ"
    )
    sys.exit(1 if bad else 0)


main()
