"""Explicit sharding (shardings in types) and placement of arrays, as under stock JAX."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, EXPLICIT, Cases, on, permuted, put, ramp

cases = Cases()
MIXED = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


def explicit(*spec, shape=(8, 16), dtype=np.float32):
    return put(*spec, shape=shape, mesh=EXPLICIT, dtype=dtype)


def in_explicit(f):
    """A case that runs under jax.set_mesh(EXPLICIT)."""

    @cases
    @functools.wraps(f)
    def run():
        with jax.set_mesh(EXPLICIT):
            return f()

    return f


@in_explicit
def elementwise_and_reductions():
    x = explicit("x", "y")
    return jax.jit(lambda v: (jnp.sin(v) + 1, v.sum(0), v.max(1), v.mean(), v.T, jnp.argmax(v, 1)))(
        x
    )


@in_explicit
def eager_operators():
    x = explicit("x", "y")
    return x * 2 + 1, jnp.exp(x), x.sum(1), x.T, x


@in_explicit
def matmul_with_out_sharding():
    a, b = explicit("x", "y"), explicit("y", None, shape=(16, 8))
    f = jax.jit(
        lambda a, b: (
            jnp.matmul(a, b, out_sharding=P("x")),
            jnp.einsum("ij,jk->ki", a, b, out_sharding=P(None, "x")),
        )
    )
    return f(a, b)


@in_explicit
def dot_with_free_dimensions_split():
    return jax.jit(lambda a, b: a @ b)(explicit("x", None), explicit(None, "y", shape=(16, 8)))


@cases
def ambiguous_dot_is_an_error():
    with jax.set_mesh(EXPLICIT):
        return jax.jit(lambda a, b: a @ b)(explicit("x", "y"), explicit("y", None, shape=(16, 8)))


@cases
def conflicting_operands_are_an_error():
    with jax.set_mesh(EXPLICIT):
        return jax.jit(lambda a, b: a + b)(explicit("x"), explicit("y"))


@in_explicit
def reshard_of_all_kinds():
    x = explicit("x", "y")
    specs = [P(), P("y", "x"), P(("x", "y")), P(None, ("y", "x")), P(None, "x"), P("y")]
    return jax.jit(lambda v: [jax.sharding.reshard(v, s) for s in specs])(x), jax.sharding.reshard(
        x, P("y")
    )


@in_explicit
def broadcast_reshape_and_transpose():
    x = explicit("x", "y")
    f = jax.jit(
        lambda v: (
            jnp.broadcast_to(v, (3, 8, 16)),
            lax.reshape(v, (8, 4, 4), out_sharding=P("x", "y", None)),
            lax.broadcast_in_dim(v, (8, 2, 16), (0, 2)),
            v[:, None],
            jnp.squeeze(v[:, None], 1),
            lax.expand_dims(v, (1,)),
        )
    )
    return f(x)


@in_explicit
def iota_and_full():
    f = jax.jit(
        lambda: (
            lax.broadcasted_iota(jnp.int32, (8, 4), 0, out_sharding=P("x", None)),
            jnp.zeros((8, 4), out_sharding=P("x", "y")),
        )
    )
    return f()


@in_explicit
def gradient():
    w, x = explicit(None, "y", shape=(16, 8)), explicit("x", None)
    return jax.jit(jax.value_and_grad(lambda w, x: jnp.sum(jnp.tanh(x @ w)), argnums=(0, 1)))(w, x)


@in_explicit
def scan_over_layers():
    w, x = explicit(None, None, "y", shape=(3, 16, 16)), explicit("x", None)

    def layer(v, m):
        return jax.sharding.reshard(jnp.tanh(v @ m), P("x", None)), v.sum()

    return jax.jit(lambda x, w: lax.scan(layer, x, w))(x, w)


@in_explicit
def vmap_and_spmd_axis_name():
    x = explicit("x", "y")
    return jax.jit(jax.vmap(lambda r: jnp.cumsum(jax.sharding.reshard(r, P(None)))))(x), jax.jit(
        jax.vmap(lambda v: v * 2, in_axes=1, out_axes=1)
    )(x)


@in_explicit
def cond_and_while():
    x = explicit("x", "y")
    f = jax.jit(lambda p, v: lax.cond(p, jnp.sin, jnp.cos, v))
    g = jax.jit(
        lambda v: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (v, 0))
    )
    return f(True, x), f(False, x), g(x)


@in_explicit
def auto_axes():
    @jax.jit
    @functools.partial(jax.sharding.auto_axes, out_sharding=P("x", "y"))
    def f(v):
        return lax.with_sharding_constraint(v @ v.T @ v, P("x", "y"))

    return f(explicit("x", "y"))


@in_explicit
def auto_axes_of_some():
    @jax.jit
    def f(v):
        g = jax.sharding.auto_axes(lambda a: a * 2 + a.sum(), axes="y", out_sharding=P("x", "y"))
        return g(v)

    return f(explicit("x", "y"))


@cases
def explicit_axes():
    with jax.set_mesh(AUTO):

        @jax.jit
        def f(v):
            g = jax.sharding.explicit_axes(lambda a: jnp.sin(a) * 2, in_sharding=P("x", "y"))
            return g(v)

        return f(put("x", "y"))


@in_explicit
def gather_and_indexing():
    x = explicit("x", None)
    i = jax.device_put(np.array([1, 3, 5]), P())
    f = jax.jit(lambda v, i: (v.at[i].get(out_sharding=P(None, None)), v[:, 3:5]))
    return f(x, i)


@in_explicit
def embedding_lookup():
    table = explicit(None, "y")
    ids = jax.device_put(np.array([[1, 3], [5, 0]]), P("x"))
    return jax.jit(lambda t, i: t.at[i].get(out_sharding=P("x", None, "y")))(table, ids)


@in_explicit
def concatenate_split_and_pad():
    x = explicit("x", None)
    f = jax.jit(
        lambda v: (
            jnp.concatenate([v, v], 1),
            jnp.split(v, 2, 1),
            jnp.pad(v, ((0, 0), (1, 2))),
            jnp.stack([v, v]),
        )
    )
    return f(x)


@in_explicit
def sort_cumsum_and_topk():
    x = explicit("x", None)
    return jax.jit(
        lambda v: (jnp.sort(v, 1), jnp.cumsum(v, 1), lax.top_k(v, 3), jnp.argsort(v, 1))
    )(x)


@in_explicit
def convolution():
    x, w = (
        explicit("x", None, None, None, shape=(8, 4, 9, 9)),
        explicit(None, None, None, None, shape=(5, 4, 3, 3)),
    )
    return jax.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"))(x, w)


@in_explicit
def random_bits():
    f = jax.jit(
        lambda k: (
            jax.random.normal(k, (8, 16), out_sharding=P("x", "y")),
            jax.random.uniform(k, (8,), out_sharding=P("y")),
        )
    )
    return f(jax.random.key(0))


@in_explicit
def unreduced():
    a, b = explicit(None, "x"), explicit("x", None, shape=(16, 8))
    f = jax.jit(
        lambda a, b: jax.sharding.reshard(
            jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"})), P("x")
        )
    )
    return f(a, b)


@in_explicit
def unreduced_result():
    a, b = explicit(None, "x"), explicit("x", None, shape=(16, 8))
    f = jax.jit(
        lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))
    )
    out = f(a, b)
    return str(out.sharding), jax.jit(lambda v: jax.sharding.reshard(v, P()))(out)


@in_explicit
def custom_vjp_and_checkpoint():
    @jax.custom_vjp
    def f(v):
        return jnp.sin(v)

    f.defvjp(lambda v: (jnp.sin(v), v), lambda v, t: (t * jnp.cos(v),))
    return jax.jit(jax.grad(lambda v: jax.checkpoint(f)(v).sum()))(explicit("x", "y"))


@in_explicit
def lowered_types():
    x = explicit("x", "y")
    lowered = jax.jit(lambda v: v * 2).lower(x)
    compiled = lowered.compile()
    return str(lowered.out_info), str(compiled.output_shardings), compiled(x)


@cases
def mixed_axis_types():
    with jax.set_mesh(MIXED):
        x = jax.device_put(ramp(8, 16), NamedSharding(MIXED, P("x", "y")))
        f = jax.jit(
            lambda v: (v * 2, v.sum(1), lax.with_sharding_constraint(v, P(P.UNCONSTRAINED, "y")))
        )
        return [str(jax.typeof(v)) for v in f(x)], f(x)[0]


@cases
def type_of_results_under_auto():
    with jax.set_mesh(AUTO):
        return str(jax.typeof(jax.jit(lambda v: v * 2)(put("x", "y"))))


@in_explicit
def layer_norm_and_softmax():
    x = explicit("x", "y")
    f = jax.jit(
        lambda v: (
            jax.nn.softmax(v, -1),
            (v - v.mean(-1, keepdims=True)) * lax.rsqrt(v.var(-1, keepdims=True) + 1e-5),
            jax.nn.logsumexp(v, axis=0),
        )
    )
    return f(x)


@in_explicit
def attention():
    q, k, v = (explicit("x", None, "y", None, shape=(2, 8, 4, 16)) for _ in range(3))
    return jax.jit(jax.nn.dot_product_attention)(q, k, v)


@in_explicit
def donated():
    x = explicit("x", "y")
    out = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    return out, x.is_deleted()


@in_explicit
def make_array_and_shards():
    x = jax.make_array_from_callback(
        (8, 16), NamedSharding(EXPLICIT, P("x", "y")), lambda i: ramp(8, 16)[i]
    )
    y = jax.jit(lambda v: v * 2)(x)
    return [(s.index, s.device.id, s.replica_id, np.asarray(s.data)) for s in y.addressable_shards]


# --- Placement: device_put, meshes, device orders


@cases(ours=False)
def device_put_between_meshes():
    other = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    x = put("x", "y")
    y = jax.device_put(x, on("b", "a", mesh=other))
    z = jax.device_put(y, jax.devices()[3])
    return y, z, jax.device_put(z, on(("x", "y")))


@cases
def device_put_between_orders_of_devices():
    m = permuted((0, 3, 5, 2, 7, 1, 6, 4))
    return jax.device_put(put("x", "y"), on("y", "x", mesh=m)), jax.device_put(
        put(), on(("y", "x"), mesh=m)
    )


@cases(ours=False)
def device_put_to_some_devices_and_back():
    half = Mesh(np.array(jax.devices()[4:]), ("d",))
    x = jax.device_put(put("x", "y"), on("d", mesh=half))
    return x, jax.device_put(x, on("x", "y"))


@cases
def device_put_inside_jit():
    f = jax.jit(lambda v: jax.device_put(v * 2, on("y", "x")) + 1)
    g = jax.jit(lambda v: (jax.device_put(v, on(None, "x")), v))
    return f(put("x", "y")), g(put("x", "y"))


@cases(ours=False)
def device_put_of_a_tree():
    tree = {"a": ramp(8, 4), "b": [ramp(8), 3.0]}
    return jax.device_put(tree, on()), jax.device_put(tree, {"a": on("x"), "b": [on("y"), on()]})


@cases
def jit_over_a_permuted_mesh():
    m = permuted((7, 6, 5, 4, 3, 2, 1, 0))
    x = jax.device_put(ramp(8, 16), on("x", "y", mesh=m))
    f = jax.jit(
        lambda v: (jnp.roll(v, 3, 0), v @ v.T, v.sum(0)),
        out_shardings=(on("x", "y", mesh=m), on("x", mesh=m), on("y", mesh=m)),
    )
    return f(x)


@cases
def two_orders_in_one_program():
    m = permuted()
    f = jax.jit(
        lambda v: lax.with_sharding_constraint(v * 2, on("y", "x", mesh=m)),
        out_shardings=on("x", "y"),
    )
    return f(put("x", "y"))


@cases
def inputs_of_another_order():
    m = permuted()
    return jax.jit(lambda a, b: a + b)(put("x", "y"), put("x", "y", mesh=m))


@cases
def two_meshes_of_one_order():
    other = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    f = jax.jit(lambda a, b: a @ b, out_shardings=on("a", "b", mesh=other))
    return f(put("x", "y"), put("b", "a", shape=(16, 8), mesh=other))


@cases
def single_device_arguments_are_moved():
    f = jax.jit(lambda a, b, c: a * b + c, out_shardings=on("x", "y"))
    return f(put("x", "y"), jnp.float32(3), jnp.ones(16))


@cases
def committed_to_another_device_is_an_error():
    x = jax.device_put(ramp(8, 16), jax.devices()[3])
    return jax.jit(lambda a, b: a + b)(put("x", "y"), x)


@cases
def subset_of_devices():
    half = Mesh(np.array(jax.devices()[2:6]).reshape(2, 2), ("a", "b"))
    f = jax.jit(lambda v: v @ v.T, out_shardings=on("a", "b", mesh=half))
    return f(jax.device_put(ramp(8, 16), on("b", "a", mesh=half)))


@cases(ours=False)
def one_device_mesh():
    one = Mesh(np.array(jax.devices()[:1]), ("d",))
    return jax.jit(lambda v: v * 2, out_shardings=on("d", mesh=one))(ramp(4, 4))


@cases
def three_axes_and_five_dims():
    m = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
    x = jax.device_put(ramp(4, 2, 6, 4, 2), on(("c", "a"), None, "b", mesh=m))
    f = jax.jit(
        lambda v: (v.transpose(4, 2, 0, 1, 3), v.reshape(8, 48), v.sum((0, 2))),
        out_shardings=(on(None, "b", ("a", "c"), mesh=m), on("a", "b", mesh=m), on(mesh=m)),
    )
    return f(x)


@cases(shardings=False)
def array_methods():
    x = put("x", "y")
    return (
        x[3],
        x[:, 2:9:3],
        x[1:5].sum(),
        x.at[2, 3].set(9.0),
        x.astype(jnp.int8),
        x.reshape(-1),
        x.T,
        x > 0,
        abs(x),
        divmod(x, 0.75),
        x.sum(),
        float(x[0, 0]),
        x.tolist()[0][:2],
        len(x),
    )


@cases
def operators_between_shardings():
    return jax.jit(lambda a, b: a + b, out_shardings=on("x", "y"))(put("x", "y"), put("y", "x"))
