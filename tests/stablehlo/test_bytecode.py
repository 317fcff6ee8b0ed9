"""Portable artifacts (MLIR bytecode) are read as the same program as their text."""

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir

ROOT = Path(__file__).resolve().parents[2]
GSPMD = os.environ["GSPMD_BIN"]
PROGRAMS = sorted((ROOT / "tests/corpus").glob("*.mlir"))
VERSION = "1.15.0"  # as jax.export writes


def artifact(text):
    with mlir.make_ir_context():
        return _jax.mlir.serialize_portable_artifact(ir.Module.parse(text), VERSION, True)


def text_of(bytecode):
    with mlir.make_ir_context() as context:
        module = _jax.mlir.deserialize_portable_artifact(bytecode, context)
        return module.operation.get_asm(enable_debug_info=True)


def convert(path, *options):
    return subprocess.run(
        [GSPMD, "convert", "--quiet", path.name, "-o", "-", *options],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        cwd=path.parent,
    )


def assert_same(bytecode, folder):
    """What jaxlib reads from it, as text, is the same program, with its source places."""
    (folder / "m.bc").write_bytes(bytecode)
    (folder / "m.mlir").write_text(text_of(bytecode))
    ours, expected = convert(folder / "m.bc"), convert(folder / "m.mlir")
    assert expected.returncode == 0, expected.stderr
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == expected.stdout
    return ours.stdout


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_corpus(path, tmp_path):
    assert_same(artifact(path.read_text()), tmp_path)


SDY = """
module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  sdy.mesh @reversed = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {}]>,
                                              jax.buffer_donor = true},
                         %y: tensor<8x8xf32> {sdy.sharding =
                             #sdy.sharding<@mesh, [{?}p1, {"b":(1)2}p0], replicated={"a"}>,
                             tf.aliasing_output = 0 : i32})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", "b"}]>}) {
    %0 = sdy.sharding_constraint %x <@mesh, [{"b":(2)2}, {?}]> : tensor<8x8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a"}, {}]>]
        out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%l: tensor<4x8xf32>) {
      %r = "stablehlo.all_reduce"(%l) <{channel_handle = #stablehlo.channel_handle<handle = 1,
          type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>,
          use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      sdy.return %r : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.sharding_group %1 group_id=7 : tensor<8x8xf32>
    %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x8xf32>
    %3 = sdy.named_computation<"foo">(%2) in_shardings=[<@mesh, [{"a"}, {}]>]
        out_shardings=[<@mesh, [{}, {"a"}]>] (%a: tensor<8x8xf32>) {
      sdy.return %a : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.custom_call @foo(%3, %y) {sdy.sharding_rule = #sdy.op_sharding_rule<
        ([i, j], [i, k])->([i, j]) {i=8, j=8, k=8} reduction={k}, custom>,
        sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = sdy.reshard %4 <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
    return %5 : tensor<8x8xf32>
  }
}
"""


def test_sdy(tmp_path):
    hlo = assert_same(artifact(SDY), tmp_path)
    for piece in ("manual_axes", "group_id", "PropagationBarrier", "sharding_rule", "FORWARD"):
        assert piece in hlo, piece


CONSTANTS = [
    "dense<[true, false, true]> : tensor<3xi1>",
    "dense<true> : tensor<9xi1>",
    "dense<[true, false, true, true, false, false, true, true, true]> : tensor<9xi1>",
    "dense<[-2, 7]> : tensor<2xi4>",
    "dense<[1, 14]> : tensor<2xui4>",
    "dense<[-1, 3]> : tensor<2xi8>",
    "dense<[-1, 3]> : tensor<2xi64>",
    "dense<[18446744073709551615, 3]> : tensor<2xui64>",
    "dense<[[1.5, -0.0], [0x7F800000, 2.0]]> : tensor<2x2xf32>",
    "dense<[1.0, 0x7FC0]> : tensor<2xbf16>",
    "dense<[1.0, 2.0]> : tensor<2xf16>",
    "dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>",
    "dense<(1.0, 2.0)> : tensor<5xcomplex<f64>>",
    "dense<> : tensor<0x3xf32>",
    "dense<3> : tensor<i32>",
    *(
        f"dense<[1.0, 2.0]> : tensor<2x{t}>"
        for t in (
            "f8E4M3FN f8E5M2 f8E4M3 f8E3M4 f8E4M3FNUZ f8E5M2FNUZ f8E4M3B11FNUZ f8E8M0FNU "
            "f4E2M1FN f6E2M3FN f6E3M2FN f64"
        ).split()
    ),
]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants(constant, tmp_path):
    shape = constant.rsplit(" : ", 1)[1]
    text = f"""func.func @main() -> {shape} {{
      %0 = stablehlo.constant {constant}
      return %0 : {shape} }}"""
    assert_same(artifact(text), tmp_path)


def exported(bytecode):
    """A FlatBuffer whose root table has 14 fields, the last of which is the module."""
    vtable = struct.pack("<HH14H", 4 + 2 * 14, 8, *[0] * 13, 4)
    table = struct.pack("<iI", len(vtable), 4)  # back to the vtable; on to the vector
    return (
        struct.pack("<I", 4 + len(vtable)) + vtable + table + struct.pack("<I", len(bytecode))
    ) + bytecode


def test_inside_of_export(tmp_path):
    bytecode = artifact(SDY)
    (tmp_path / "m.bc").write_bytes(bytecode)
    (tmp_path / "m.exported").write_bytes(exported(bytecode))
    done = convert(tmp_path / "m.exported")
    assert done.returncode == 0, done.stderr
    assert done.stdout == convert(tmp_path / "m.bc").stdout


def test_not_portable(tmp_path):
    with mlir.make_ir_context(), (tmp_path / "m.bc").open("wb") as f:
        ir.Module.parse(SDY).operation.write_bytecode(f)
    done = convert(tmp_path / "m.bc")
    assert done.returncode == 1
    assert "portable artifacts" in done.stderr


@pytest.mark.parametrize("stem", ["sdy", "ops_mix_2x4", "conv_sweep_fwd_8"])
def test_damaged(stem, tmp_path):
    """Cut anywhere, bytes changed anywhere: a diagnostic, never a crash."""
    text = SDY if stem == "sdy" else (ROOT / f"tests/corpus/{stem}.mlir").read_text()
    whole = artifact(text)
    rng = random.Random(stem)
    path = tmp_path / "m.bc"
    refused = 0
    for k in range(150):
        damaged = bytearray(whole)
        if k % 3 == 0:
            del damaged[rng.randrange(5, len(whole)) :]
        for _ in range(k % 3):
            damaged[rng.randrange(5, len(whole))] = rng.randrange(256)
        path.write_bytes(damaged)
        done = convert(path)
        assert done.returncode in (0, 1), f"{k}: {done.stderr}"
        assert done.returncode == 0 or "error: " in done.stderr
        refused += done.returncode
    assert refused > 50
