#!/usr/bin/env python3
"""Compares our completion with XLA's, value by value.

    compare_propagation.py [GSPMD [DUMPS]] [--only PATTERN] [--most N]

For every NAME.before.hlo and NAME.after.hlo in DUMPS (bench/xla_propagation.py makes them) it runs
`gspmd propagate` on the first and compares every array, by instruction name and tuple leaf, with
the second. A value is sharded *at least as finely* as XLA's where any two devices that hold the
same tile of it in ours do in XLA's too, and *more finely* where that is so and XLA's has fewer
tiles. Both are counted in bytes of the whole (unsharded) value. Left out are values in manual
regions, values of one element, which cannot be split, and those that XLA's pass inserts.
The exit code is 1 if any file misses 95 % at least as fine or exceeds 5 % more finely.
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENOUGH, TOO_FINE = 0.95, 0.05

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = ")
LEAF = re.compile(r"\b([a-z]+[0-9]*(?:e\d\w*)?)\[([\d,<= ]*)\]")
BITS = {"pred": 8, "bf16": 16, "token": 0, "opaque": 0}
TILES = re.compile(
    r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))"
    r"( last_tile_dim_replicate)?(?: last_tile_dims=\{([^}]*)\})?"
)


def closing(text, start):
    """The index of the bracket that closes the one at `start`, outside of strings."""
    depth, quoted = 0, False
    for k in range(start, len(text)):
        char = text[k]
        if char == '"' and text[k - 1] != "\\":
            quoted = not quoted
        if not quoted:
            depth += (char in "({[") - (char in ")}]")
        if depth == 0:
            return k
    raise ValueError(f"unbalanced: {text[start : start + 80]}")


def split_parts(text):
    """The parts of "{a},{b,c}" at its outermost commas."""
    parts, depth, start = [], 0, 0
    for k, char in enumerate(text):
        depth += (char in "({[") - (char in ")}]")
        if char == "," and depth == 0:
            parts.append(text[start:k].strip())
            start = k + 1
    return [*parts, text[start:].strip()]


def integers(text):
    return [int(x) for x in text.split(",") if x.strip()]


def read_values(path):
    """{(instruction, leaf): (type text, bytes, elements, sharding text or None)}, and opcodes."""
    values, opcodes = {}, {}
    with open(path) as file:
        for line in file:
            match = INSTRUCTION.match(line)
            if not match:
                continue
            line = re.sub(r"/\*.*?\*/", "", line.rstrip("\n"))
            rest = line[re.match(INSTRUCTION, line).end() :]
            end = closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
            opcodes[match[1]] = rest[end + 1 : rest.index("(", end)]
            at = rest.find("sharding={", end)
            sharding = rest[at + 9 : closing(rest, at + 9) + 1] if at >= 0 else None
            leaves = list(LEAF.finditer(rest[:end]))
            of_leaf = shardings_of(sharding, len(leaves))
            for leaf, (part, of) in enumerate(zip(leaves, of_leaf, strict=True)):
                elements = int(np.prod(integers(part[2].replace("<=", "")), dtype=object))
                bits = BITS.get(part[1]) or int(re.search(r"\d+", part[1] + "0")[0])
                values[match[1], leaf] = (part[0], elements * bits / 8, elements, of)
    return values, opcodes


def shardings_of(text, leaves):
    """One sharding text a leaf: a tuple's `{{...}, {...}}` apart, one for all repeated."""
    if text is None or not re.match(r"\{\s*[{/]", text):
        return [text] * leaves
    parts = split_parts(text[1:-1])
    return parts if len(parts) == leaves else [text] * leaves


@functools.cache
def tiles(text, n):
    """(tile counts per dimension, tile number of each of n devices, or None where n is too many).

    None for a manual value. No sharding, and a maximal one, are one tile.
    """
    match = TILES.search(text or "")
    if text and re.fullmatch(r"\{manual\b.*\}", text):
        return None
    if not match:
        return (), np.zeros(n, np.int64) if n <= 2048 else None
    dims = integers(match[1])
    extra = len(match[6].split(",")) if match[6] else 1 if match[5] else 0
    if match[6] and "manual" in match[6]:
        return None
    counts = tuple(dims[: len(dims) - extra])
    if n > 2048:
        return counts, None
    if match[4]:
        ids = np.array(integers(match[4]))
    else:
        shape = integers(match[2])
        ids = np.arange(np.prod(shape)).reshape(shape)
        ids = ids.transpose(integers(match[3])) if match[3] else ids
    grid = ids.reshape(int(np.prod(counts)), -1)
    of_device = np.zeros(n, np.int64)
    of_device[grid] = np.arange(len(grid))[:, None]
    return counts, of_device


@functools.cache
def compare(ours, theirs, n):
    """(at least as fine, more fine) of two sharding texts; None where either is manual."""
    a, b = tiles(ours, n), tiles(theirs, n)
    if a is None or b is None:
        return None
    fewer = np.prod(b[0], dtype=np.int64) < np.prod(a[0], dtype=np.int64)
    if a[1] is None or b[1] is None:
        length = max(len(a[0]), len(b[0]))
        x, y = (np.array(t[0] + (1,) * (length - len(t[0]))) for t in (a, b))
        fine = bool(np.all(x % y == 0))
    else:
        pairs = len(np.unique(np.stack([a[1], b[1]]), axis=1).T)
        fine = pairs == len(np.unique(a[1]))
    return fine, fine and bool(fewer)


def propagate(binary, before):
    with tempfile.NamedTemporaryFile(suffix=".hlo") as out:
        command = [binary, "propagate", "--quiet", before, "-o", out.name]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return read_values(out.name)


def report(name, binary, dumps, most):
    """Prints the figures of one program; (at least as fine, more fine) as shares of the bytes."""
    before = os.path.join(dumps, name + ".before.hlo")
    with open(before) as file:
        match = re.search(r"num_partitions=(\d+)", file.readline())
    n = int(match[1]) if match else 1
    ours, opcodes = propagate(binary, before)
    theirs, _ = read_values(os.path.join(dumps, name + ".after.hlo"))
    total = fine = finer = 0.0
    given = read_values(before)[0]  # what XLA's pass itself inserted has no counterpart
    missing, differences = 0, []
    for key, (shape, size, elements, sharding) in theirs.items():
        if elements <= 1 or key not in given:
            continue
        if key not in ours:
            missing, total = missing + 1, total + size
            continue
        verdict = compare(ours[key][3], sharding, n)
        if verdict is None:
            continue
        total, fine, finer = total + size, fine + size * verdict[0], finer + size * verdict[1]
        if not verdict[0] or verdict[1]:
            what = "finer" if verdict[1] else "coarser"
            differences.append((size, what, *key, opcodes[key[0]], shape, sharding, ours[key][3]))
    shares = (fine / total, finer / total) if total else (1.0, 0.0)
    lost = f", {missing} values are missing in ours" if missing else ""
    print(f"{name:36} {100 * shares[0]:7.2f} % {100 * shares[1]:7.2f} %{lost}", flush=True)
    for size, what, instr, leaf, op, shape, xla, gspmd in sorted(differences, reverse=True)[:most]:
        print(f"    {what} {size / 1e6:.3f} MB {instr}.{leaf} {op} {shape}")
        print(f"        XLA {xla}\n        we  {gspmd}")
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    release = os.path.join(ROOT, "build", "release", "gspmd")
    parser.add_argument("gspmd", nargs="?", default=release)
    parser.add_argument("dumps", nargs="?", default=os.path.join(ROOT, "build", "xla_dumps"))
    parser.add_argument("--only", default="", help="a pattern of the programs to compare")
    parser.add_argument("--most", type=int, default=0, help="differences to list per file")
    args = parser.parse_args()
    if not os.path.isdir(args.dumps):
        sys.exit(f"{args.dumps} is not there; run bench/xla_propagation.py --all first")
    suffix = ".before.hlo"
    stems = (f.removesuffix(suffix) for f in os.listdir(args.dumps) if f.endswith(suffix))
    names = sorted(stem for stem in stems if re.search(args.only, stem))
    print(f"{'program':36} {'as fine':>9} {'finer':>9}   (of all values' bytes)")
    failed = []
    for name in names:
        try:
            fine, finer = report(name, args.gspmd, args.dumps, args.most)
        except subprocess.CalledProcessError as error:
            print(f"{name:36} FAILED {error.stderr.strip()[:200]}")
            fine, finer = 0, 0
        if fine < ENOUGH or finer > TOO_FINE:
            failed.append(name)
    print(f"{len(names) - len(failed)} of {len(names)} within the bounds ({ENOUGH}, {TOO_FINE})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
