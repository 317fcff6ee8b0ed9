"""What JAX lowers each operator of jax.lax to is read: as text and as a portable artifact."""

import sys
from pathlib import Path

import jax
import pytest
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import lax_cases_structured  # noqa: E402, F401  (adds its cases)
from lax_cases import CASES  # noqa: E402
from test_bytecode import VERSION, assert_same, convert  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_read(name, tmp_path):
    f, args = CASES[name]
    lowered = jax.jit(f).lower(*args)
    for debug_info in (False, True):
        (tmp_path / "lowered.mlir").write_text(lowered.as_text(debug_info=debug_info))
        done = convert(tmp_path / "lowered.mlir")
        assert done.returncode == 0, done.stderr
    with mlir.make_ir_context():
        module = ir.Module.parse(lowered.as_text())
        bytecode = _jax.mlir.serialize_portable_artifact(module, VERSION, True)
    assert_same(bytecode, tmp_path)
    # What is printed again is valid StableHLO.
    printed = convert(tmp_path / "lowered.mlir", "--output-format=mlir")
    assert printed.returncode == 0, printed.stderr
    with mlir.make_ir_context():
        assert ir.Module.parse(printed.stdout).operation.verify()
