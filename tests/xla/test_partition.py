"""XLA reads what `gspmd partition` writes, and computes the same with it as with the original."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))
REAL = pathlib.Path(os.environ.get("GSPMD_REAL", ROOT.parent / "shared" / "real"))
CASES = sorted((ROOT / "tests/cases").glob("*.hlo"))
CORPUS = sorted((ROOT / "tests/corpus").glob("*.hlo"))
SMALL = ["conv_sweep_fwd_8", "dilated_conv_train_4x2", "xf_small_fwd_fin_2x4", "fft_spectral_8"]

# One device of XLA can not run the border of a manual region; `gspmd check` judges those
# (tests/cli/test_check.py).
BORDERS = ("SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape")
WHOLE = [
    p
    for p in sorted((ROOT / "tests/partition").glob("*.hlo"))
    if not any(b in p.read_text() for b in BORDERS)
]

# In a process of its own, since XLA aborts on some texts.
READ = "import sys; from jaxlib import _hlo; _hlo.hlo_module_from_text(open(sys.argv[1]).read())"


def partition(path, out):
    return subprocess.run(
        [GSPMD, "partition", "--quiet", str(path), "-o", str(out)], capture_output=True, text=True
    )


@pytest.mark.parametrize("path", CORPUS + sorted(REAL.glob("*.hlo")), ids=lambda p: p.stem)
def test_xla_reads_the_partitioned_program(path, tmp_path):
    out = tmp_path / "out.hlo"
    done = partition(path, out)
    assert done.returncode == 0, done.stderr
    read = subprocess.run([sys.executable, "-c", READ, str(out)], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr[-2000:]


@pytest.mark.parametrize(
    "path", [c for c in CASES if c.stem.startswith("bad_")], ids=lambda p: p.stem
)
def test_wrong_shardings_are_refused_with_their_place(path, tmp_path):
    done = partition(path, tmp_path / "out.hlo")
    assert done.returncode == 1
    assert f"{path}:4:45: error: 4 tiles but 16 devices" in done.stderr


@pytest.mark.parametrize(
    "path",
    [c for c in CASES if not c.stem.startswith("bad_")]
    + [c for c in CORPUS if c.stem in SMALL]
    + WHOLE,
    ids=lambda p: p.stem,
)
def test_xla_computes_the_same(path):
    judge = subprocess.run(
        [sys.executable, str(ROOT / "tests/xla/check_on_xla.py"), GSPMD, str(path)],
        capture_output=True,
        text=True,
    )
    assert judge.returncode == 0, judge.stdout + judge.stderr[-2000:]
