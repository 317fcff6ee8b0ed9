"""What is printed as StableHLO is accepted by jaxlib and read back as the same program."""

import os
import subprocess
from pathlib import Path

import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

ROOT = Path(__file__).resolve().parents[2]
GSPMD = os.environ["GSPMD_BIN"]
PROGRAMS = sorted((ROOT / "tests/corpus").glob("*.mlir"))


def run(*command):
    done = subprocess.run([GSPMD, *map(str, command)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["convert", "partition"])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_accepted(path, command, tmp_path):
    out = tmp_path / "out.mlir"
    run(command, "--quiet", path, "-o", out)
    with mlir.make_ir_context():
        assert ir.Module.parse(out.read_text()).operation.verify()


@pytest.mark.parametrize("stem", ["ops_mix_2x4", "conv_sweep_fwd_8", "moe_small_fwd_4x2"])
def test_read_back(stem, tmp_path):
    once, twice = tmp_path / "once.mlir", tmp_path / "twice.mlir"
    run("convert", "--quiet", ROOT / f"tests/corpus/{stem}.mlir", "-o", once)
    run("convert", "--quiet", once, "-o", twice)
    assert once.read_text() == twice.read_text()


def test_hlo_to_stablehlo(tmp_path):
    out = tmp_path / "out.mlir"
    run("convert", "--quiet", ROOT / "tests/corpus/xf_uneven_train_2x4.hlo", "-o", out)
    with mlir.make_ir_context():
        assert ir.Module.parse(out.read_text()).operation.verify()
    run("partition", "--quiet", out, "-o", tmp_path / "out.hlo")
