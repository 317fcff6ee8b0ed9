#!/usr/bin/env python3
"""Partitions generated programs of up to 1,000,000 instructions: time is linear, memory bounded.

    million.py [--sizes 62500,250000,1000000]
    million.py --write FILE SIZE     # only the program

The program is a chain of blocks on a mesh of 2 x 4: two dots that contract over a split dimension,
element-wise work, a reduction and its broadcast, a transpose, a reshape and its inverse. Every
eighth block lies in a computation of its own that is called once. Exit code 1 where the largest
takes over 10 s or 4 GB, or where time for each instruction grows by more than half from the
smallest to the largest. Needs GSPMD_BIN or build/release/gspmd.
"""

import argparse
import json
import os
import sys
import tempfile

import devices

LINES = """\
u{k} = f32[64,256] dot({x}, w1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
t{k} = f32[64,256] tanh(u{k})
n{k} = f32[64,256] negate(t{k})
m{k} = f32[64,256] multiply(t{k}, n{k})
d{k} = f32[64,128] dot(m{k}, w2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
a{k} = f32[64,128] add(d{k}, {x})
r{k} = f32[64] reduce(a{k}, zero), dimensions={{1}}, to_apply=sum
b{k} = f32[64,128] broadcast(r{k}), dimensions={{0}}
s{k} = f32[64,128] subtract(a{k}, b{k})
c{k} = f32[64,8,16] reshape(s{k})
p{k} = f32[8,64,16] transpose(c{k}), dimensions={{1,0,2}}
e{k} = f32[8,64,16] exponential(p{k})
q{k} = f32[64,8,16] transpose(e{k}), dimensions={{1,0,2}}
y{k} = f32[64,128] reshape(q{k})
"""
PLACE = ', metadata={{{{op_name="block/{name}" source_file="model.py" source_line={line}}}}}'
BLOCK = "".join(
    f"  {text}{PLACE.format(name=text[0], line=line)}\n"
    for line, text in enumerate(LINES.splitlines(), start=12)
)
IN_BLOCK = BLOCK.count("\n")
CALLED_EVERY = 8
PARAMETERS = """\
  {x} = f32[64,128] parameter(0){split}
  w1 = f32[128,256] parameter(1){columns}
  w2 = f32[256,128] parameter(2){rows}
  zero = f32[] constant(0)
"""
SUM = """\
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

"""
SHARDINGS = {
    "split": ", sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    "columns": ", sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    "rows": ", sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
}
MAX_SECONDS, MAX_BYTES, MAX_GROWTH = 10, 4e9, 1.5


def write_program(file, size):
    """About `size` instructions in all."""
    blocks = max(1, size // IN_BLOCK)
    file.write("HloModule million, num_partitions=8\n\n")
    file.write(SUM)
    for k in range(0, blocks, CALLED_EVERY):
        file.write(f"f{k} {{\n" + PARAMETERS.format(x="x", split="", columns="", rows=""))
        block = BLOCK.format(k=k, x="x")
        at = block.rindex("  y")
        file.write(block[:at] + "  ROOT" + block[at + 1 :] + "}\n\n")
    file.write("ENTRY main {\n" + PARAMETERS.format(x="x", **SHARDINGS))
    x = "x"
    for k in range(blocks):
        if k % CALLED_EVERY == 0:
            file.write(f"  y{k} = f32[64,128] call({x}, w1, w2), to_apply=f{k}\n")
        else:
            file.write(BLOCK.format(k=k, x=x))
        x = f"y{k}"
    file.write(f"  ROOT out = f32[64,128] copy({x}){SHARDINGS['split']}\n}}\n")


def measure(size):
    """({phase: milliseconds}, instructions read, bytes at the peak) of a program of this size."""
    with tempfile.TemporaryDirectory() as folder:
        path, stats = os.path.join(folder, "program.hlo"), os.path.join(folder, "stats.json")
        with open(path, "w") as file:
            write_program(file, size)
        peak = devices.run(
            [devices.GSPMD, "partition", "--quiet", path, "-o", "/dev/null", "--stats", stats]
        )
        with open(stats) as file:
            found = json.load(file)
    return found["ms"], found["instructions"]["before"], peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sizes", default="62500,250000,1000000")
    parser.add_argument("--write", nargs=2, metavar=("FILE", "SIZE"))
    args = parser.parse_args()
    if args.write:
        with open(args.write[0], "w") as file:
            write_program(file, int(args.write[1]))
        return 0
    each, total, peak = [], 0, 0
    for size in map(int, args.sizes.split(",")):
        ms, count, peak = measure(size)
        total = ms["total"] / 1e3
        each.append(ms["total"] * 1e3 / count)
        phases = ", ".join(f"{name} {value / 1e3:.2f}" for name, value in ms.items())
        print(f"{count:>9,} instructions: {each[-1]:.2f} us each, {peak / 1e9:.2f} GB; s: {phases}")
    print(f"largest: {total:.1f} s (at most {MAX_SECONDS}), {peak / 1e9:.2f} GB (at most 4)")
    print(f"time for each instruction: {each[-1] / each[0]:.2f} of the smallest program's")
    fast = total <= MAX_SECONDS and peak <= MAX_BYTES
    return 0 if fast and each[-1] <= MAX_GROWTH * each[0] else 1


if __name__ == "__main__":
    sys.exit(main())
