#!/usr/bin/env python3
"""Compare our completion with XLA's sharding propagation, value by value.

    compare_propagation.py GSPMD DUMPS [--only REGEX] [--most N]

DUMPS holds NAME.before.hlo and NAME.after.hlo: XLA's module right before and right after its
propagation (bench/xla_propagation.py makes them). `gspmd propagate` runs on the first; every array
leaf of every instruction is compared with the second, by name, weighed by its bytes. "Finer or
equal": devices that hold the same tile in ours hold the same tile in XLA's. Per file: the
percentage of bytes at least as fine as XLA's, and strictly finer; then the largest differences.
"""

import argparse
import collections
import functools
import math
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
LEAF = re.compile(r"\b(pred|token|opaque|bf16|c64|c128|[suf]\d+(?:e\d\w*)?)\[([\d,<=]*)\]")
DEVICES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")
MANY = 4096  # devices: beyond, only tile counts are compared


def balanced(text, start):
    depth = 0
    for k in range(start, len(text)):
        depth += text[k] in "{(["
        depth -= text[k] in "})]"
        if depth == 0:
            return text[start : k + 1]
    return text[start:]


def elements(text):
    """The shardings of a tuple, or the one."""
    if not text.startswith("{{"):
        return None
    parts, at = [], 1
    while at < len(text) - 1:
        if text[at] == "{":
            part = balanced(text, at)
            parts.append(part)
            at += len(part)
        else:
            at += 1
    return parts


def values(path):
    """(computation, name) -> [(opcode, bytes, dims, sharding text) of each leaf]"""
    out, computation = {}, ""
    for line in open(path, errors="replace"):
        if line[:1] not in " }\n":
            computation = line.split("(")[0].replace("ENTRY", "").strip(" %{\n")
        m = LINE.match(line)
        if m is None:
            continue
        rest = re.sub(r"/\*.*?\*/", "", m[2])
        shape = balanced(rest, 0) if rest.startswith("(") else rest.split(" ", 1)[0]
        opcode = rest[len(shape) :].lstrip().split("(")[0]
        at = rest.find(", sharding={")
        text = balanced(rest, at + len(", sharding=")) if at >= 0 else "{replicated}"
        tuple_parts = elements(text)
        leaves = []
        for k, (dtype, dims) in enumerate(LEAF.findall(shape)):
            dims = [int(d.lstrip("<=")) for d in dims.split(",") if d]
            bits = 8 if dtype == "pred" else int((re.search(r"\d+", dtype) or ["0"])[0] or 0)
            part = text if tuple_parts is None else (tuple_parts[k : k + 1] or ["{replicated}"])[0]
            leaves.append((opcode, math.prod(dims) * bits / 8, dims, part))
        out[computation, m[1]] = leaves
    return out


@functools.cache
def tiles(text, rank):
    """Tile counts, and each device's tile number (None where there are too many devices)."""
    m = DEVICES.search(text)
    if m is None:
        return (1,) * rank, None
    dims = [int(x) for x in m[1].split(",")]
    counts = tuple(dims[:rank])
    if math.prod(dims) > MANY:
        return counts, None
    if m[2]:
        shape = [int(x) for x in m[2].split(",")]
        ids = np.arange(math.prod(shape)).reshape(shape)
        if m[3]:
            ids = ids.transpose([int(x) for x in m[3].split(",")])
        ids = ids.reshape(-1)
    else:
        ids = np.array([int(x) for x in m[4].split(",")])
    number = np.empty(len(ids), int)
    number[ids] = np.arange(len(ids)) // math.prod(dims[rank:])
    return counts, number


@functools.cache
def as_fine(ours, theirs, rank):
    """Whether ours is at least as fine as theirs."""
    a, b = tiles(ours, rank), tiles(theirs, rank)
    if math.prod(b[0]) == 1:
        return True
    if a[1] is None or b[1] is None or len(a[1]) != len(b[1]):
        return all(x % y == 0 for x, y in zip(a[0], b[0], strict=True))
    pairs = set(zip(a[1].tolist(), b[1].tolist(), strict=True))
    return len(pairs) == len(set(a[1].tolist()))


def compare(gspmd, before, after):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.hlo")
        subprocess.run([gspmd, "propagate", before, "-o", out, "--quiet"], check=True)
        ours = values(out)
    total = fine = finer = 0.0
    differences = collections.Counter()
    for key, leaves in values(after).items():
        for k, (opcode, size, dims, theirs) in enumerate(leaves):
            if key not in ours or k >= len(ours[key]) or not dims:
                continue
            mine, rank = ours[key][k][3], len(dims)
            total += size
            at_least, at_most = as_fine(mine, theirs, rank), as_fine(theirs, mine, rank)
            fine += size * at_least
            finer += size * (at_least and not at_most)
            if not (at_least and at_most):
                kind = "finer" if at_least else "COARSER" if at_most else "OTHER"
                differences[f"{kind} {key[1]} {opcode} {dims}: XLA {theirs} ours {mine}"] += size
    return total, fine, finer, differences


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("gspmd")
    a.add_argument("dumps")
    a.add_argument("--only", default="")
    a.add_argument("--most", type=int, default=0, help="differences to list")
    o = a.parse_args()
    worst = 100.0
    for name in sorted(os.listdir(o.dumps)):
        stem = name.removesuffix(".before.hlo")
        if stem == name or not re.search(o.only, stem):
            continue
        before, after = (os.path.join(o.dumps, f"{stem}.{x}.hlo") for x in ("before", "after"))
        total, fine, finer, differences = compare(o.gspmd, before, after)
        total = total or 1
        worst = min(worst, 100 * fine / total)
        print(
            f"{stem:36} at least as fine {100 * fine / total:6.2f} %   finer {100 * finer / total:6.2f} %"
        )
        for text, size in differences.most_common(o.most):
            print(f"    {100 * size / total:5.2f} % {text}")
    sys.exit(0 if worst >= 95 else 1)


if __name__ == "__main__":
    main()
