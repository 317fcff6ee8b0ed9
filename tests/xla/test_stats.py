"""`gspmd stats` counts as an independent counter of HLO text does.

The programs in tests/golden/partitioned_by_xla are what XLA (jaxlib 0.10.2) made of small
programs; NAME.json beside each holds the counter's figures. Where the counter itself is at hand (a
file xla_baseline.py in the folder GSPMD_TOOLS, by default ../shared/tools), figures are counted
anew, also of all programs in GSPMD_CORPUS and GSPMD_REAL (by default ../shared/corpus and
../shared/real) and in GSPMD_XLA_DUMPS, if set.

    python3 tests/xla/test_stats.py --update     writes the .json files
"""

import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/partitioned_by_xla"
BIN = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))


def folder(variable, default):
    return pathlib.Path(os.environ.get(variable, ROOT / ".." / "shared" / default))


COUNTER = folder("GSPMD_TOOLS", "tools") / "xla_baseline.py"


def counted(path, num_partitions):
    """The counter's figures, under the names that `gspmd stats` has for them."""
    spec = importlib.util.spec_from_file_location("xla_baseline", COUNTER)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    r = tool.analyse(str(path), num_partitions)
    names = {"count": "count", "executed": "executed", "bytes": "operand_bytes"}
    names["wire_bytes"] = "wire_bytes"
    return {
        "instructions": r["instructions"],
        "collectives": {
            kind: {ours: c[theirs] for ours, theirs in names.items()}
            for kind, c in sorted(r["collectives"].items())
        },
        "total_bytes": r["operand_bytes"],
        "wire_bytes": r["wire_bytes"],
        "unknown_loop_wire_bytes": r["unknown_loop_wire"],
        "loops": {"known": r["loops_known"], "unknown": r["loops_unknown"]},
        "dot": r["dot_flops"],
        "convolution": r["conv_flops"],
        "elements": r["work"],
        "bytes_touched": r["touched"],
    }


def stats(path):
    run = subprocess.run([BIN, "stats", "--json", "-q", path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def figures(s):
    """What of gspmd's figures the counter knows too."""
    flops = s["flops"]
    kept = ("collectives", "total_bytes", "wire_bytes", "unknown_loop_wire_bytes", "loops")
    return {k: s[k] for k in kept} | {
        "instructions": s["instructions"]["after"],
        "dot": flops["dot"],
        "convolution": flops["convolution"],
        "elements": flops["elementwise"] + flops["other"],
        "bytes_touched": s["bytes_touched"],
    }


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def differences(ours, theirs):
    a, b = dict(flat(ours)), dict(flat(theirs))
    keys = sorted(a.keys() | b.keys())
    return [
        f"{k}: {a.get(k)} against {b.get(k)}"
        for k in keys
        if k not in a or k not in b or not math.isclose(a[k], b[k], rel_tol=1e-12)
    ]


def programs():
    found = sorted(GOLDEN.glob("*.hlo"))
    for where in (folder("GSPMD_CORPUS", "corpus"), folder("GSPMD_REAL", "real")):
        found += sorted(where.glob("*.hlo"))
    if "GSPMD_XLA_DUMPS" in os.environ:
        found += sorted(pathlib.Path(os.environ["GSPMD_XLA_DUMPS"]).glob("*.hlo"))
    return found


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.hlo")), ids=lambda p: p.stem)
def test_golden(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    assert differences(figures(stats(path)), expected) == []


@pytest.mark.skipif(not COUNTER.exists(), reason=f"the counter is not at {COUNTER}")
@pytest.mark.parametrize("path", programs(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_counter(path):
    ours = stats(path)
    assert differences(figures(ours), counted(path, ours["num_partitions"])) == []
    assert ours["peak_bytes"] > 0


if __name__ == "__main__" and sys.argv[1:] == ["--update"]:
    for golden in sorted(GOLDEN.glob("*.hlo")):
        figures_of = counted(golden, stats(golden)["num_partitions"])
        golden.with_suffix(".json").write_text(json.dumps(figures_of, indent=1) + "\n")
