#!/usr/bin/env python3
"""Compile time, instructions and memory on 8 to 1,048,576 devices: they should not know how many.

    devices.py [--reps N] [--no-instructions]

Takes tests/corpus/scale_xf_train_8x16.hlo, a training step with two mesh axes, and rewrites the
sizes of the axes. The model is made so large that every size divides on every mesh, also where a
dimension passes from one axis to both: where sizes do not divide, the program is another one. For
each mesh:

    instructions  retired from the parsed to the final module (callgrind)
    ms            the same by the clock: the minimum, meshes taken in turn
    peak MB       largest resident size of the whole command

Exit code 1 where the largest and the smallest of a column differ by more than 5, 10 and 5 percent.
Needs valgrind, and GSPMD_BIN or build/release/gspmd.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GSPMD = os.environ.get("GSPMD_BIN", os.path.join(ROOT, "build/release/gspmd"))
PROGRAM = os.path.join(ROOT, "tests/corpus/scale_xf_train_8x16.hlo")
MESHES = [(2, 4), (8, 16), (32, 64), (128, 512), (512, 2048)]
X, Y = 8, 16  # as the file has them
LARGER = {256: 2**11, 8192: 2**20, 32768: 2**20, 65536: 2**20}  # heads; model, vocabulary, hidden
LIMITS = {"instructions": 0.05, "ms": 0.10, "peak MB": 0.05}


def numbers(text, replace):
    return ",".join(str(replace.get(int(n), int(n))) for n in text.split(","))


def on_mesh(text, x, y):
    """The program with its axes of X and Y devices made x and y, and the model enlarged."""
    sizes = {X: x, Y: y, X * Y: x * y}
    text = re.sub(
        r"devices=\[([\d,]+)\]<=\[([\d,]+)\]",
        lambda m: f"devices=<{numbers(m[1], sizes)}><=<{numbers(m[2], sizes)}>",
        text,
    )
    text = re.sub(
        r"([\[{])([\d,]+)([\]}])",
        lambda m: m[1] + numbers(m[2], LARGER) + m[3],
        text,
    )
    text = re.sub(r"devices=<([\d,]+)><=<([\d,]+)>", r"devices=[\1]<=[\2]", text)
    return text.replace(f"num_partitions={X * Y}", f"num_partitions={x * y}")


def run(command):
    """Runs it and returns its largest resident size in bytes."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(f"{command} failed: {message.decode()[-500:]}")
    return usage.ru_maxrss * 1024


def compile_once(path):
    """(milliseconds from the parsed to the final module, megabytes at the peak)"""
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [GSPMD, "partition", "--quiet", path, "-o", "/dev/null", "--stats", stats.name]
        peak = run(command)
        ms = json.load(stats)["ms"]
    return ms["propagate"] + ms["partition"] + ms["optimize"], peak / 1e6


def count_instructions(path):
    with tempfile.NamedTemporaryFile() as out:
        run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=gspmd::partition(*"]
            + [f"--callgrind-out-file={out.name}", GSPMD, "partition", "--quiet", path]
            + ["-o", "/dev/null"]
        )
        return int(re.search(rb"^(?:totals|summary): (\d+)", out.read(), re.M)[1])


def measure(folder, reps, instructions):
    with open(PROGRAM) as file:
        text = file.read()
    paths = {}
    for x, y in MESHES:
        paths[x, y] = os.path.join(folder, f"{x}x{y}.hlo")
        with open(paths[x, y], "w") as file:
            file.write(on_mesh(text, x, y))
    rows = {mesh: {} for mesh in MESHES}
    for _ in range(reps):
        for mesh, path in paths.items():
            for name, value in zip(("ms", "peak MB"), compile_once(path), strict=True):
                rows[mesh][name] = min(value, rows[mesh].get(name, value))
    if instructions:
        for mesh, path in paths.items():
            rows[mesh]["instructions"] = count_instructions(path)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reps", type=int, default=25)
    parser.add_argument("--no-instructions", action="store_true", help="valgrind is not there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(folder, args.reps, not args.no_instructions)
    columns = [name for name in LIMITS if name in rows[MESHES[0]]]
    print(f"{'devices':>10} " + "".join(f"{name:>16}" for name in columns))
    for (x, y), row in rows.items():
        print(f"{x * y:>10} " + "".join(f"{row[name]:16,.6g}" for name in columns))
    failed = False
    for name in columns:
        values = [row[name] for row in rows.values()]
        spread = max(values) / min(values) - 1
        failed |= spread > LIMITS[name]
        print(f"{name}: {spread:.1%} apart (at most {LIMITS[name]:.0%})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
