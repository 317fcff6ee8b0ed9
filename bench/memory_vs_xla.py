#!/usr/bin/env python3
"""Peak memory and size of per-device programs against XLA's, program by program.

    memory_vs_xla.py                # every .hlo of ../shared/real and ../shared/corpus
    memory_vs_xla.py FILE...

Both per-device programs, ours and what XLA's partitioner (GSPMD mode) makes of the same file, are
measured by `gspmd stats`: the same estimator of peak memory (liveness, aliasing, donation; the best
of a few orders) and the same count of instructions. XLA's CPU client stops at 2048 devices:
programs for more are left out. Exit code 1 where ours needs more memory than XLA's for some
program. Needs the jaxlib wheel of requirements-test.txt, and GSPMD_BIN or build/release/gspmd.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import xla_propagation as xla

GSPMD = os.environ.get("GSPMD_BIN", os.path.join(xla.ROOT, "build/release/gspmd"))
XLA_LIMIT = 2048


def partitioned_dump(folder):
    """XLA's per-device program, once a later pass of the pipeline shows that it is complete."""
    after = [f for f in os.listdir(folder) if "after_spmd-partitioning" in f and f.endswith(".txt")]
    return os.path.join(folder, after[0]) if after else None


def partition_by_xla(path, out):
    with tempfile.TemporaryDirectory(prefix="memory_vs_xla") as work:
        flags = (
            f"--xla_dump_to={work} --xla_dump_hlo_as_text "
            "--xla_dump_hlo_pass_re=spmd-partitioning|simplification|algsimp|zero_sized"
        )
        output = xla.xla_child.run(
            lambda: xla.compile_without_sdy(path, flags),
            lambda _: (
                partitioned_dump(work) is not None
                and any(
                    "after_spmd-partitioning" not in f and "before" not in f and "after" in f
                    for f in os.listdir(work)
                )
            ),
        )
        dump = partitioned_dump(work)
        if dump is None:
            raise RuntimeError(f"no dump of {path}: {output.strip()[-300:]}")
        with open(dump) as source, open(out, "w") as target:
            target.write(source.read())


def measure(program):
    command = [GSPMD, "stats", "--quiet", "--json", program]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found["peak_bytes"], found["instructions"]["after"]


def compare(path):
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.hlo"), os.path.join(folder, "theirs.hlo")
        subprocess.run([GSPMD, "partition", "--quiet", path, "-o", ours], check=True)
        partition_by_xla(path, theirs)
        return measure(ours), measure(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    import jaxlib.xla_client  # noqa: F401  once, before the children fork

    more = 0
    print(f"{'program':<34}{'peak MB':>12}{'XLA':>12}{'ratio':>7}{'instr':>8}{'XLA':>8}")
    for path in args.files or xla.all_given_files():
        with open(path) as file:
            if xla.num_partitions(file.readline()) > XLA_LIMIT:
                continue
        (peak, size), (xla_peak, xla_size) = compare(path)
        more += peak > xla_peak
        name = os.path.basename(path).removesuffix(".hlo")
        print(
            f"{name:<34}{peak / 1e6:12.2f}{xla_peak / 1e6:12.2f}{peak / xla_peak:7.2f}"
            f"{size:8}{xla_size:8}",
            flush=True,
        )
    print(f"more memory than XLA's in {more}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
