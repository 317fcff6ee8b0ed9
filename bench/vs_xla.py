#!/usr/bin/env python3
"""Compile time against XLA's own passes, program by program, in one run on one machine.

    vs_xla.py                       # every .hlo of ../shared/real and ../shared/corpus
    vs_xla.py [--reps N] FILE...

    XLA    its sharding-propagation and spmd-partitioning passes alone, by its own timers
    gspmd  completion, partitioning and clean-up: everything from the parsed to the final module

Every measurement of either side is a process of its own, so nothing is cached; the two sides take
turns, and the minimum of --reps counts. XLA runs in its GSPMD mode, the faster of its two. Its CPU
client stops at 2048 devices: programs for more are left out. Needs the jaxlib wheel of
requirements-test.txt, and GSPMD_BIN or build/release/gspmd.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

os.environ["TF_CPP_VMODULE"] = "hlo_pass_pipeline=1"  # makes XLA print the time of each pass
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
import xla_propagation as xla  # (also finds xla_child)

GSPMD = os.environ.get("GSPMD_BIN", os.path.join(xla.ROOT, "build/release/gspmd"))
XLA_LIMIT = 2048
PASSES = ("sharding-propagation", "spmd-partitioning")
PASS_TIME = re.compile(r"HLO pass: ([\w\-]+) time: .*?\(([\d.]+) us\)")
GOALS = {"median": 20, "worst": 10, "milliseconds": 100}


def time_xla(path):
    """Milliseconds of the two passes, or RuntimeError with XLA's last words."""
    output = xla.xla_child.run(
        lambda: xla.compile_without_sdy(path),
        lambda text: re.search(r"HLO pass: spmd-partitioning time.*\n", text),
    )
    times = {}
    for name, microseconds in PASS_TIME.findall(output):
        times.setdefault(name, float(microseconds) / 1e3)
    if not all(p in times for p in PASSES):
        raise RuntimeError(output.strip()[-300:])
    return sum(times[p] for p in PASSES)


def time_gspmd(path):
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        subprocess.run(
            [GSPMD, "partition", "--quiet", path, "-o", "/dev/null", "--stats", stats.name],
            check=True,
        )
        ms = json.load(stats)["ms"]
    return ms["propagate"] + ms["partition"] + ms["optimize"]


def measure(path, reps):
    ours, theirs = [], []
    for _ in range(reps):
        ours.append(time_gspmd(path))
        theirs.append(time_xla(path))
        ours.append(time_gspmd(path))
    return min(ours), min(theirs)


def report(rows):
    ratios = [theirs / ours for ours, theirs in rows.values()]
    worst = min(rows, key=lambda name: rows[name][1] / rows[name][0])
    slowest = max(rows, key=lambda name: rows[name][0])
    median = statistics.median(ratios)
    print(f"median ratio  {median:6.1f}  (goal {GOALS['median']})")
    print(f"worst ratio   {min(ratios):6.1f}  (goal {GOALS['worst']}), of {worst}")
    print(f"slowest       {rows[slowest][0]:6.1f} ms (goal {GOALS['milliseconds']}), {slowest}")
    return (
        median >= GOALS["median"]
        and min(ratios) >= GOALS["worst"]
        and rows[slowest][0] <= GOALS["milliseconds"]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    import jaxlib.xla_client  # noqa: F401  once, before the children fork

    rows = {}
    print(f"{'program':<34}{'XLA ms':>10}{'gspmd ms':>10}{'ratio':>8}")
    for path in args.files or xla.all_given_files():
        name = os.path.basename(path).removesuffix(".hlo")
        with open(path) as file:
            if xla.num_partitions(file.readline()) > XLA_LIMIT:
                continue
        try:
            ours, theirs = measure(path, args.reps)
        except RuntimeError as error:
            print(f"{name:<34}  XLA failed: {error}")
            return 1
        rows[name] = (ours, theirs)
        print(f"{name:<34}{theirs:10.2f}{ours:10.2f}{theirs / ours:8.1f}", flush=True)
    return 0 if report(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
