"""Damaged and unsupported StableHLO gives a place and a message."""

import os
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GSPMD = os.environ["GSPMD_BIN"]

WRONG = {
    "unknown value": (
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.add %a, %b : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n",
        "m.mlir:2:26: error: %b is not defined here",
    ),
    "unknown operation": (
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = arith.addf %a, %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n",
        "m.mlir:2:8: error: the operation arith.addf",
    ),
    "dynamic size": (
        "func.func @main(%a: tensor<?xf32>) -> tensor<4xf32> { return %a : tensor<?xf32> }\n",
        "m.mlir:1:28: error: tensors of dynamic size",
    ),
    "recursion": (
        "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n",
        "m.mlir:2:8: error: func.call: @main calls itself",
    ),
    "no main": ("module { }\n", "error: builtin.module: there is no function"),
    "wrong shape": (
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.transpose %a, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %0 : tensor<4xf32>\n}\n",
        "m.mlir:2:8: error: ",
    ),
    "wrong mesh": (
        "module attributes {mhlo.num_partitions = 4 : i32} {\n"
        "func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>})"
        " -> tensor<4xf32> { return %a : tensor<4xf32> } }\n",
        "there is no mesh @m",
    ),
    "wrong mesh of a result": (
        "func.func @main(%a: tensor<4xf32>)"
        " -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>})"
        " { return %a : tensor<4xf32> }\n",
        "m.mlir:1:1: error: func.func: #sdy.sharding<@m",
    ),
    "constant": (
        "func.func @main() -> tensor<2xf32> {\n"
        "  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>\n"
        "  return %0 : tensor<2xf32>\n}\n",
        "m.mlir:2:33: error: 3 elements where f32[2] has 2",
    ),
}  # fmt: skip


def run(path):
    return subprocess.run(
        [GSPMD, "partition", path.name, "-o", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=20,
        cwd=path.parent,
    )


@pytest.mark.parametrize("name", WRONG)
def test_message(name, tmp_path):
    text, expected = WRONG[name]
    path = tmp_path / "m.mlir"
    path.write_text(text)
    done = run(path)
    assert done.returncode == 1, done.stderr
    assert expected in done.stderr


@pytest.mark.parametrize("stem", ["ops_mix_2x4", "shardmap_mix_2x4", "moe_small_fwd_4x2"])
def test_damaged(stem, tmp_path):
    """Truncated anywhere, bytes changed anywhere: a diagnostic, never a crash."""
    text = (ROOT / f"tests/corpus/{stem}.mlir").read_text()
    rng = random.Random(stem)
    path = tmp_path / "m.mlir"
    for k in range(40):
        cut = rng.randrange(1, len(text))
        damaged = text[:cut]
        if k % 2:
            damaged += rng.choice('(){}[]<>:,%"#@x0-') + text[cut + rng.randrange(2) :]
        path.write_text(damaged)
        done = run(path)
        assert done.returncode in (0, 1), f"cut at {cut}: {done.stderr}"
        assert done.returncode == 0 or "error: " in done.stderr
