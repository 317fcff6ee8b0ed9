"""gspmd.partition and what its result tells; gspmd.testing, mesh_split and pipeline."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import gspmd

MESH = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def shaped(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=on(mesh, *spec))


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 64


@jax.jit
def layer(params, x, *, scale=1.0):
    return {"y": jnp.tanh(x @ params["w"]) * scale}


def inputs(mesh):
    return {"w": shaped(mesh, (16, 8), "y", None)}, shaped(mesh, (8, 16), "x", "y")


def test_reports():
    part = gspmd.partition(layer, *inputs(MESH))
    assert part.num_partitions == 8
    (params, x), keywords = part.input_shardings
    assert params["w"] == on(MESH, "y") and x == on(MESH, "x", "y") and keywords == {}
    assert part.output_shardings["y"].is_equivalent_to(on(MESH, "x"), 2)
    (only,) = part.collectives()
    assert (only.kind, only.count, only.bytes) == ("all-reduce", 1, 4 * 8 * 4)
    assert only.place.endswith("test_partition.py:29")
    cost = part.cost_analysis()
    assert cost["flops"] >= 2 * 4 * 4 * 8 and cost["transcendentals"] == 4 * 8
    memory = part.memory_analysis()
    assert memory["argument_size_in_bytes"] == 4 * 8 * 4 + 4 * 4 * 4
    assert memory["output_size_in_bytes"] == memory.output_size_in_bytes == 4 * 8 * 4
    with pytest.raises(KeyError):
        memory["no_such_size"]
    assert "all-reduce" in part.as_text() and "stablehlo.all_reduce" in part.as_text("stablehlo")
    assert "args[0]['w']" in part.explain() and "all-reduce" in part.explain()
    assert ">all-reduce</td>" in part._repr_html_()
    assert ">args[0][&#x27;w&#x27;]</td>" in part._repr_html_()
    part.check()


def test_call_takes_and_returns_pytrees():
    params, x = {"w": ramp(16, 8)}, ramp(8, 16)
    placed = jax.device_put((params, x), (on(MESH, "y"), on(MESH, "x", "y")))
    part = gspmd.partition(layer, *placed, scale=2.0)
    np.testing.assert_allclose(
        part(*placed, scale=2.0)["y"], layer(params, x, scale=2.0)["y"], rtol=1e-6
    )
    np.testing.assert_allclose(
        gspmd.partition(layer.lower(*placed))(*placed)["y"], layer(params, x)["y"], rtol=1e-6
    )


def test_abstract_mesh_of_2048_devices():
    mesh = AbstractMesh((32, 64), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    part = gspmd.partition(
        layer, {"w": shaped(mesh, (640, 8), "y")}, shaped(mesh, (320, 640), "x", "y")
    )
    assert part.num_partitions == 2048
    assert part.input_shardings[0][1] == on(mesh, "x", "y")
    assert part.collectives().counts() == {"all-reduce": 1}


def test_other_forms_of_a_program():
    lowered = layer.lower(*inputs(MESH))
    exported = jax.export.export(layer)(*inputs(MESH))
    want = gspmd.partition(layer, *inputs(MESH)).collectives().counts()
    for form in (
        *(lowered, layer.trace(*inputs(MESH)), lowered.as_text()),
        *(exported, exported.mlir_module()),
    ):
        assert gspmd.partition(form).collectives().counts() == want
    hlo = lowered.compiler_ir("hlo").as_hlo_text()  # its header does not leave the result free
    reduced_then_gathered = 2 * 3 / 4 * (4 * 8 * 4) + 1 * (4 * 8 * 4)  # over y, then over x
    for form in (hlo, hlo.encode()):
        part = gspmd.partition(form)
        assert "{replicated}" in part.output_shardings
        assert 0 < part.collectives().wire_bytes <= reduced_then_gathered
        part.check()
    with pytest.raises(TypeError, match="given as text"):
        gspmd.partition(lowered.as_text())(1)


def test_unused_arguments_have_no_sharding():
    f = jax.jit(lambda a, b, c: a + c)
    x = shaped(MESH, (8, 8), "x")
    part = gspmd.partition(f, x, x, x)
    assert part.input_shardings == ((on(MESH, "x"), None, on(MESH, "x")), {})


def test_bad_programs():
    with pytest.raises(TypeError, match="not jitted"):
        gspmd.partition(lambda x: x, 1)
    with pytest.raises(TypeError, match="got int"):
        gspmd.partition(3)
    with pytest.raises(TypeError, match="takes no arguments"):
        gspmd.partition("HloModule m", 1)
    with pytest.raises(gspmd.Error, match="error"):
        gspmd.partition("HloModule m\nENTRY e { ROOT a = f32[2] nothing() }")
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: gspmd.partition(jax.jit(jnp.sin), x))(1.0)
    with pytest.raises(ValueError, match="dialect"):
        gspmd.partition(layer, *inputs(MESH)).as_text("llvm")


def test_mesh_split():
    f = jax.jit(lambda x: gspmd.mesh_split(x * 2, MESH, [0, -1]))
    with gspmd.use():
        assert f(ramp(8, 8)).sharding.is_equivalent_to(on(MESH, "x"), 2)
    x = ramp(8, 8)
    with pytest.raises(ValueError, match="1 entries"):
        gspmd.mesh_split(x, MESH, [0])
    with pytest.raises(ValueError, match=r"dims_mapping\[1\] is 2"):
        gspmd.mesh_split(x, MESH, [0, 2])
    with pytest.raises(ValueError, match="no axis 'z'"):
        gspmd.mesh_split(x, MESH, ["z", None])
    with pytest.raises(ValueError, match="two dimensions"):
        gspmd.mesh_split(x, MESH, [0, "x"])
    with pytest.raises(TypeError, match="mesh"):
        gspmd.mesh_split(x, "mesh", [0, 1])


@pytest.mark.parametrize("rounds", [1, 2])
def test_pipeline(rounds):
    weights, x = ramp(4 * rounds, 8, 8) % 1 - 0.5, ramp(6, 4, 8) % 1

    def stage(w, v):
        return jnp.tanh(v @ w)

    def run(w, x):
        return gspmd.pipeline(stage, w, x, mesh=MESH, axis="y", rounds=rounds)

    def loss(w, x):
        return jnp.sum(run(w, x) ** 2)

    def plain(w, x):
        for k in range(w.shape[0]):
            x = stage(w[k], x)
        return x

    with gspmd.use():
        got, gradient = jax.jit(run)(weights, x), jax.jit(jax.grad(loss))(weights, x)
    assert gspmd.last_report() is not None
    np.testing.assert_allclose(got, plain(weights, x), rtol=1e-5, atol=1e-6)
    want = jax.grad(lambda w: jnp.sum(plain(w, x) ** 2))(weights)
    np.testing.assert_allclose(gradient, want, rtol=1e-4, atol=1e-5)
    assert "collective-permute" in gspmd.testing.collectives(jax.jit(run), weights, x).counts()


def test_testing():
    placed = jax.device_put(({"w": ramp(16, 8)}, ramp(8, 16)), (on(MESH, "y"), on(MESH, "x", "y")))
    gspmd.testing.assert_same_as_unsharded(layer, *placed)
    gspmd.testing.assert_collectives(layer, *placed, {"all-reduce": 1, "total-bytes": 128})
    with pytest.raises(AssertionError, match="all-gather: expected 1, got 0"):
        gspmd.testing.assert_collectives(layer, *placed, {"all-gather": 1})
    with pytest.raises(AssertionError, match="total-bytes: at most 100, got 128"):
        gspmd.testing.assert_collectives(layer, *placed, {"total-bytes": 100})
