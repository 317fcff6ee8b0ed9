"""Collectives of the partitioned programs, against tests/real/collectives.json.

tools/update_golden rewrites the file; its diff is the review. The programs of the corpus stand in
tests/corpus; real ones are read in place from GSPMD_REAL and skipped where that is absent.
"""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))
REAL = pathlib.Path(os.environ.get("GSPMD_REAL", ROOT.parent / "shared" / "real"))
GOLDEN = ROOT / "tests/real/collectives.json"


def measure(path, folder):
    out, stats = folder / "out.hlo", folder / "stats.json"
    subprocess.run(
        [GSPMD, "partition", "--quiet", str(path), "-o", str(out), "--stats", str(stats)],
        check=True,
    )
    s = json.loads(stats.read_text())
    return {
        "wire_bytes": round(s["wire_bytes"]),
        "collectives": {kind: c["count"] for kind, c in sorted(s["collectives"].items())},
    }


def program(name):
    return (ROOT / "tests/corpus" if name.startswith("corpus/") else REAL) / pathlib.Path(name).name


@pytest.mark.parametrize("name", sorted(json.loads(GOLDEN.read_text())))
def test_collectives(name, tmp_path):
    path = program(name)
    if not path.exists():
        pytest.skip(f"{path} is not there: set GSPMD_REAL")
    assert measure(path, tmp_path) == json.loads(GOLDEN.read_text())[name]
