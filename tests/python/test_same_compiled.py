"""Lowered, compiled, serialised and exported programs, as under stock JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, Cases, on, permuted, put, ramp

cases = Cases()
ONE_DIM = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


# --- Lowered and compiled objects


@cases
def compiled_attributes():
    f = jax.jit(
        lambda p, x: {"y": x @ p["w"]},
        in_shardings=({"w": on("y")}, on("x", "y")),
        out_shardings={"y": on("x")},
    )
    lowered = f.lower({"w": ramp(16, 8)}, ramp(8, 16))
    c = lowered.compile()
    return (
        c.input_shardings,
        c.output_shardings,
        str(c.in_tree),
        str(c.out_tree),
        str(c.in_avals),
        str(c.out_avals if hasattr(c, "out_avals") else ""),
        sorted(k for k in c.cost_analysis() if not k.endswith("}")),
        type(c.memory_analysis()).__name__,
        str(lowered.args_info),
        str(lowered.out_info),
        len(c.as_text()) > 0,
        str(c.input_formats),
        str(c.output_formats),
    )


@cases
def compiled_figures_of_each_device():
    f = jax.jit(lambda a: a * 2, in_shardings=on("x", "y"), out_shardings=on("x", "y"))
    c = f.lower(ramp(8, 16)).compile()
    m = c.memory_analysis()
    return (
        c.cost_analysis()["flops"],
        m.argument_size_in_bytes,
        m.output_size_in_bytes,
        m.alias_size_in_bytes,
    )


@cases
def compiled_is_called_wrongly():
    c = jax.jit(lambda a, b: a + b).lower(put("x"), put("x")).compile()
    return c(put("x"))


@cases
def compiled_with_another_type():
    c = jax.jit(lambda a: a + 1).lower(put("x")).compile()
    return c(put("x", dtype=np.int32))


@cases
def compiled_with_another_sharding():
    c = jax.jit(lambda a: a + 1).lower(put("x")).compile()
    return c(put("y"))


@cases
def compiled_with_unsharded_inputs():
    c = (
        jax.jit(lambda a: a + 1, in_shardings=on("x"), out_shardings=on("x"))
        .lower(ramp(8, 4))
        .compile()
    )
    return c(ramp(8, 4)), c(jnp.ones((8, 4)))


@cases
def compiler_options():
    f = jax.jit(
        lambda a: a + 1,
        out_shardings=on("x"),
        compiler_options={"xla_embed_ir_in_executable": True},
    )
    return f(put("x")), f.lower(put("x")).compile({"xla_llvm_disable_expensive_passes": True})(
        put("x")
    )


@cases
def wrong_compiler_option():
    return jax.jit(lambda a: a + 1, compiler_options={"xla_no_such_option": True})(put("x"))


@cases
def lowered_for_shapes():
    f = jax.jit(lambda a: a.sum(0), out_shardings=on("y"))
    c = f.lower(jax.ShapeDtypeStruct((8, 16), np.float32, sharding=on("x", "y"))).compile()
    return c(put("x", "y")), c.input_shardings


@cases
def runtime_executable():
    c = jax.jit(lambda a: a @ a.T, in_shardings=on("x")).lower(ramp(8, 16)).compile()
    e = c.runtime_executable()
    return (
        len(e.local_devices()),
        len(e.hlo_modules()),
        [str(s) for s in e.get_parameter_shardings()],
    )


@cases
def serialised_executable():
    from jax.experimental import serialize_executable as se

    c = (
        jax.jit(lambda a, b: (a @ b, {"k": a}))
        .lower(put("x", "y"), put("y", shape=(16, 8)))
        .compile()
    )
    loaded = se.deserialize_and_load(*se.serialize(c), execution_devices=jax.devices())
    return loaded(put("x", "y"), put("y", shape=(16, 8)))[1], np.asarray(
        loaded(put("x", "y"), put("y", shape=(16, 8)))[0]
    )


@cases
def exported():
    e = jax.export.export(
        jax.jit(
            lambda a: (a @ a.T, a.sum(0)),
            in_shardings=on("x", "y"),
            out_shardings=(on("x"), on("y")),
        )
    )(ramp(8, 16))
    back = jax.export.deserialize(e.serialize())
    x = put("x", "y")
    return jax.jit(e.call)(x), jax.jit(back.call)(x), back.nr_devices, e.call(x)


@cases
def exported_and_called_on_another_mesh():
    e = jax.export.export(
        jax.jit(lambda a: a * 2 + a.sum(), in_shardings=on("x", "y"), out_shardings=on("x"))
    )(ramp(8, 16))
    m = permuted((7, 6, 5, 4, 3, 2, 1, 0), (4, 2), ("a", "b"))
    f = jax.jit(
        jax.export.deserialize(e.serialize()).call,
        in_shardings=on("a", mesh=m),
        out_shardings=on("b", mesh=m),
    )
    return f(ramp(8, 16))


@cases
def exported_with_gradient():
    e = jax.export.export(
        jax.jit(lambda a: jnp.sum(jnp.sin(a) ** 2), in_shardings=on("x", "y"), out_shardings=on())
    )(ramp(8, 16))
    back = jax.export.deserialize(e.serialize(vjp_order=1))
    return jax.jit(jax.grad(back.call))(put("x", "y"))


@cases
def exported_shard_map():
    f = jax.shard_map(
        lambda v: lax.psum(v, "y") * lax.axis_index("x"),
        mesh=AUTO,
        in_specs=P("x", "y"),
        out_specs=P("x"),
    )
    e = jax.export.export(jax.jit(f))(put("x", "y"))
    return jax.jit(jax.export.deserialize(e.serialize()).call)(put("x", "y"))


@cases
def exported_called_with_too_few_devices():
    e = jax.export.export(jax.jit(lambda a: a * 2, in_shardings=on("x", "y")))(ramp(8, 16))
    return jax.jit(e.call)(ramp(8, 16))


@cases
def exported_with_a_symbolic_size():
    (n,) = jax.export.symbolic_shape("n")
    e = jax.export.export(jax.jit(lambda a: a * 2 + a.shape[0]))(
        jax.ShapeDtypeStruct((n, 4), np.float32)
    )
    return jax.jit(e.call, in_shardings=on("x"), out_shardings=on("x"))(ramp(8, 4))
