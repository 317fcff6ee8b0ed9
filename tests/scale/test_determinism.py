"""The same input gives the same bytes: in every run, on any number of threads, at any addresses."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))
CORPUS = ROOT / "tests/corpus"
PROGRAMS = sorted(path.name for path in CORPUS.glob("*.hlo"))
FIXED_ADDRESSES = ["setarch", "-R"]
RUNNABLE = ["shardmap_mix_2x4.hlo", "xf_small_fwd_fin_2x4.hlo"]


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def has_fixed_addresses():
    return shutil.which("setarch") and run([*FIXED_ADDRESSES, "true"])[0] == 0


@pytest.mark.parametrize("command", ["partition", "explain"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_agree(name, command):
    line = [GSPMD, command, str(CORPUS / name)]
    first = run(line)
    assert first[0] == 0, first[2].decode()
    # Other threads; a heap that starts elsewhere, is given out in other pieces and is never zero.
    other = {"OMP_NUM_THREADS": "2", "MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_PERTURB_": "165"}
    assert run(line, OMP_NUM_THREADS="1") == first
    assert run(line, **other) == first


@pytest.mark.skipif(not has_fixed_addresses(), reason="setarch -R is not permitted here")
@pytest.mark.parametrize("name", PROGRAMS)
def test_addresses_do_not_matter(name):
    line = [GSPMD, "partition", str(CORPUS / name)]
    assert run([*FIXED_ADDRESSES, *line]) == run(line)


@pytest.mark.parametrize("name", RUNNABLE)
def test_results_do_not_depend_on_threads(name):
    results = [
        run([GSPMD, "run", str(CORPUS / name), "--seed", "7", "--threads", threads])
        for threads in ("1", "2", "5")
    ]
    assert results[0][0] == 0, results[0][2].decode()
    assert results[1] == results[0]
    assert results[2] == results[0]
