#!/usr/bin/env python3
"""Judge the partitioner by XLA's CPU runtime: one device against N.

    check_on_xla.py GSPMD FILE.hlo [--seed S] [-v]

The original program runs on one device, the partitioned one on N. Inputs are small dyadic
values, indices small; padding of uneven shards is poisoned. A result agrees where
|N - 1| <= 2e-4 * max|1| (floats; 2e-2 for bf16 and f16) or exactly (all else). Exit code 1 on a
difference.
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


def partitioned(folder):
    """The per-device text, and the shardings of its parameters and results."""
    out, completed = os.path.join(folder, "out.hlo"), os.path.join(folder, "completed.hlo")
    subprocess.run([GSPMD, "partition", FILE, "-o", out, "--quiet"], check=True)
    subprocess.run(
        [GSPMD, "partition", FILE, "-o", completed, "--quiet", "--stop-after=propagate"],
        check=True,
    )
    return open(out).read(), *interface(completed)


def random_array(dtype, dims, rng):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, dims).astype(bool)
    if kind in "iu":
        return rng.integers(0, 4, dims).astype(dtype)
    real = rng.integers(-4, 5, dims) / 8
    if kind == "c":
        return (real + 1j * rng.integers(-4, 5, dims) / 8).astype(dtype)
    return real.astype(dtype)


def blocks(whole, sharding, n):
    """Each device's block; what lies beyond the array is poisoned."""
    kind = whole.dtype.kind
    poison = np.nan if kind in "fcV" else True if kind == "b" else np.iinfo(whole.dtype).max
    tiles, counts = tile_of_device(sharding, whole.ndim, n)
    local = [-(-x // c) for x, c in zip(whole.shape, counts, strict=True)]
    out = []
    for device in range(n):
        piece = whole[box(tiles[device], local, whole.shape)]
        block = np.full(local, poison, whole.dtype)
        block[tuple(slice(0, e) for e in piece.shape)] = piece
        out.append(block)
    return out


def box(tile, local, dims):
    return tuple(
        slice(min(t * b, x), min((t + 1) * b, x)) for t, b, x in zip(tile, local, dims, strict=True)
    )


def difference(got, want):
    if want.dtype.kind in "biu":
        return float(np.sum(got != want))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    delta = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
    return float(np.max(np.where(np.isnan(delta), np.inf, delta), initial=0.0))


def compare(k, want, devices, sharding, n):
    """True where every device's block of result k is the right one."""
    tiles, counts = tile_of_device(sharding, want.ndim, n)
    local = [-(-x // c) for x, c in zip(want.shape, counts, strict=True)]
    worst, where = 0.0, None
    for device in range(n):
        right = want[box(tiles[device], local, want.shape)]
        got = np.asarray(devices[device])[tuple(slice(0, e) for e in right.shape)]
        d = difference(got, right)
        if not d <= worst:
            worst, where = d, device
    exact = want.dtype.kind in "biu"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    scale = 1 if exact else float(np.max(np.abs(np.nan_to_num(want.astype(wide))), initial=0.0))
    allowed = 0 if exact else (2e-2 if want.dtype.itemsize == 2 else 2e-4) * max(scale, 1e-30)
    ok = worst <= allowed
    if VERBOSE or not ok:
        print(
            f"  result {k} {want.dtype}{list(want.shape)} {sharding}: "
            f"{'ok' if ok else 'DIFFERS'} by {worst:.3g} of {scale:.3g} (device {where})"
        )
    return ok


def main():
    with tempfile.TemporaryDirectory() as folder:
        text, params, results = partitioned(folder)
    n = int((re.search(r"num_partitions=(\d+)", text.split("\n")[0]) or [0, 1])[1])
    sys.argv = ["run_partitioned.py", FILE, str(n)]
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "..", "..", "tools"))
    import run_partitioned as rp

    one_text, one_params, one_results = rp.prepare(open(FILE).read(), 1)
    n_text, _, _ = rp.prepare(text, n)
    rng = np.random.default_rng(SEED)
    whole = [random_array(rp.DT[s.dtype], list(s.dims), rng) for s in one_params]
    args = [blocks(w, p, n) for w, p in zip(whole, params, strict=True)]
    ones = rp.execute(one_text, [[w] for w in whole], 1)
    many = rp.execute(n_text, args, n)
    good = [
        compare(k, np.asarray(ones[k][0]), many[k], results[k], n) for k in range(len(one_results))
    ]
    verdict = "agrees" if all(good) else "DIFFERS"
    name = os.path.basename(FILE)
    print(f"{name}: {verdict}: {len(good)} results, {good.count(False)} differ")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
