"""Arrays over several devices, however they were made, as under stock JAX."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, EXPLICIT, Cases, on, permuted, put, ramp

cases = Cases()


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


def placed(x):
    """What each device holds of an array."""
    return [
        (s.device.id, str(s.index), s.replica_id, np.asarray(s.data)) for s in x.addressable_shards
    ]


@cases
def made_from_a_callback():
    host = ramp(8, 16)
    x = jax.make_array_from_callback((8, 16), on("y", "x"), lambda i: host[i])
    y = jax.jit(lambda a: a * 2, out_shardings=on("x"))(x)
    return x, y, placed(y)


@cases
def made_from_single_device_arrays():
    host = ramp(8, 16)
    s = on("x", "y")
    parts = [
        jax.device_put(host[i], d) for d, i in s.addressable_devices_indices_map((8, 16)).items()
    ]
    x = jax.make_array_from_single_device_arrays((8, 16), s, parts)
    return placed(jax.jit(lambda a: a.T, in_shardings=s, out_shardings=on("x"))(x))


@cases
def made_from_process_local_data():
    x = jax.make_array_from_process_local_data(on("x"), ramp(8, 16))
    return jax.jit(jnp.sum, out_shardings=on())(x), x


@cases
def shards_of_results():
    f = jax.jit(lambda a: (a + 1, a.T), out_shardings=(on("y", "x"), on(("x", "y"))))
    return [placed(r) for r in f(put("x", "y"))]


@cases
def shards_over_a_permuted_mesh():
    m = permuted()
    x = jax.device_put(ramp(8, 16), on("x", "y", mesh=m))
    return placed(jax.jit(lambda a: a * 3, out_shardings=on("y", "x", mesh=m))(x))


@cases
def indexed_outside():
    x = put("x", "y")
    return x[0], x[1:5, ::2], x[jnp.array([3, 1, 7])], x[-1, 3], x[..., None], x[x[:, 0] > 0]


@cases
def updated_outside():
    x = put("x", "y")
    return (
        x.at[2].set(0),
        x.at[1:3, 4:9].add(2.0),
        x.at[jnp.array([0, 7])].multiply(3),
        x.at[:, 1].max(0),
    )


@cases(ours=False)
def iterated_and_unpacked():
    x = put("x", shape=(8, 4))
    return list(x), [float(v) for v in put("x", shape=(8,))], len(x)


@cases(ours=False)
def properties_of_arrays():
    x = put("x", "y")
    return (
        x.is_fully_addressable,
        x.is_fully_replicated,
        x.nbytes,
        x.size,
        x.ndim,
        x.itemsize,
        str(x.global_shards[3].index),
        x.on_device_size_in_bytes(),
        repr(x),
        str(x),
        x.committed,
    )


@cases
def properties_of_results():
    x = jax.jit(lambda a: a + 1)(put("x", "y"))
    return (
        x.is_fully_addressable,
        x.is_fully_replicated,
        x.nbytes,
        str(x.global_shards[3].index),
        x.on_device_size_in_bytes(),
        repr(x),
        x.committed,
        f"{x.sum()}",
        format(x[0, 0]),
        x.tolist(),
    )


@cases
def pickled_and_copied():
    x = jax.jit(lambda a: a + 1)(put("x", "y"))
    return (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        copy.copy(x),
        x.copy(),
        jnp.array(x),
        jnp.asarray(x),
    )


@cases
def deleted_by_donation():
    x = put("x")
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x.is_deleted(), y.is_deleted(), y


@cases
def used_after_donation():
    x = put("x")
    jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x + 1


@cases
def numpy_functions_on_results():
    x = jax.jit(lambda a: a + 1, out_shardings=on("y", "x"))(put("x", "y"))
    return (
        np.sum(x),
        np.asarray(x).T,
        np.array(x, dtype=np.float64),
        x.__array__(),
        memoryview(np.asarray(x)).shape,
    )


@cases(shardings=False)
def arithmetic_outside():
    a, b = put("x", "y"), put("y", "x")
    return a + b, a * 2, 2 - b, a @ b.T, -a, a > b, abs(a), a**2, a // 2, a % 3, divmod(a, 2.0)


@cases
def host_arrays_and_device_arrays():
    f = jax.jit(lambda a, b, c: a + b * c)
    return (
        f(put("x"), ramp(8, 16), 3.0),
        f(put("x"), jnp.ones((8, 16)), np.float32(2)),
        f(put("x"), 1, True),
    )


@cases(ours=False)
def device_put_everywhere():
    x = ramp(8, 16)
    a = jax.device_put(x, on("x"))
    return [
        jax.device_put(a, s)
        for s in (
            on("y"),
            on(),
            on(("x", "y")),
            on(None, "x"),
            jax.devices()[3],
            jax.sharding.SingleDeviceSharding(jax.devices()[1]),
        )
    ]


@cases
def device_put_with_donate_and_alias():
    a = jax.jit(lambda v: v * 2)(put("x"))
    b = jax.device_put(a, on("y"), donate=True)
    c = jax.device_put(b, on("y"), may_alias=False)
    return b, c


@cases
def device_put_sharded_values():
    y = jax.jit(lambda *v: [a * 2 for a in v])(
        *jax.device_put(
            [ramp(8), ramp(16, 8), ramp(8, 8, 8)], [on("x"), on("x", "y"), on(None, "y", "x")]
        )
    )
    return y, jax.device_get(y)


@cases
def block_and_async_copies():
    x = jax.jit(lambda a: a + 1)(put("x"))
    x.copy_to_host_async()
    return np.asarray(x), x.block_until_ready(), x.is_ready()


@cases
def empty_shards_at_the_border():
    # Inside a program a constraint need not divide.
    f = jax.jit(lambda a: lax.with_sharding_constraint(a * 2, on("y")).sum(0), out_shardings=on())
    return f(ramp(5, 3)), f(ramp(3, 3)), f(ramp(1, 3)), f(ramp(9, 3))


@cases
def uneven_values_inside():
    def f(a, b):
        c = lax.with_sharding_constraint(a @ b, on("x", "y"))
        d = lax.with_sharding_constraint(jnp.concatenate([c, c[1:]]), on("y", "x"))
        e = lax.with_sharding_constraint(jnp.flip(d, 0)[::2], on(("x", "y")))
        return (
            lax.with_sharding_constraint(jnp.cumsum(e, 0), on("y")),
            jnp.sort(d, 0),
            jnp.argmax(e, 1),
        )

    return jax.jit(f, out_shardings=on())(ramp(7, 5), ramp(5, 11))


@cases
def uneven_argument_with_given_sharding():
    return jax.jit(lambda a: a, in_shardings=on("x"))(ramp(7, 3))


@cases
def uneven_device_put():
    return jax.device_put(ramp(7, 3), on("x"))


@cases(shardings=False)
def one_axis_many_shapes():
    m = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))
    f = jax.jit(lambda a: jnp.sort(a * 2) + a.sum())
    return [f(jax.device_put(ramp(n), NamedSharding(m, P("d")))) for n in (8, 16, 24, 64)]


@cases
def mesh_of_size_one_axes():
    m = jax.make_mesh((1, 8, 1), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
    f = jax.jit(lambda v: v @ v.T, out_shardings=on("c", "b", mesh=m))
    return f(jax.device_put(ramp(8, 16), on("a", ("b", "c"), mesh=m)))


@cases
def mesh_as_context():
    with AUTO:
        f = jax.jit(lambda a: lax.with_sharding_constraint(a * 2, P("x", "y")))
        return f(ramp(8, 16))


@cases
def meshes_of_some_devices():
    out = []
    for ids in ([0, 1], [2, 3, 6, 7], [7, 5], [1, 4, 2]):
        m = Mesh(np.array(jax.devices())[ids], ("d",))
        out.append(
            jax.jit(lambda a: a * 2 + a.sum(0))(
                jax.device_put(ramp(12, 4), NamedSharding(m, P("d")))
            )
        )
    return out


@cases
def spec_forms():
    f = jax.jit(lambda a: a + 1)
    forms = [
        P(),
        P(None),
        P(None, None),
        P("x"),
        P(("x",)),
        P(("x", "y"), None),
        P(("y", "x")),
        P((), "x"),
        P("y", None),
    ]
    return [f(jax.device_put(ramp(8, 16), NamedSharding(AUTO, s))) for s in forms]


@cases
def shardings_of_scalars_and_vectors():
    f = jax.jit(lambda a, b: (a.sum(), a.mean(0), a.max(1), b + 1, jnp.float32(3)))
    return f(put("x", "y"), jax.device_put(2.0, on()))


@cases
def natural_elementwise_outputs():
    f = jax.jit(
        lambda a, b: (
            a + b,
            jnp.sin(a),
            jnp.where(a > 0, a, b),
            a.astype(jnp.bfloat16),
            -b,
            a == b,
            jnp.clip(a, 0, 1),
        )
    )
    return [
        f(put(*s), put(*s))
        for s in (("x", "y"), ("y",), (None, "x"), (("x", "y"),), (None, ("y", "x")))
    ]


@cases
def natural_outputs_of_mixed_operands():
    f = jax.jit(lambda a, b: a + b)
    pairs = [(("x",), (None, "y")), (("x",), ()), ((), (None, "y")), (("x", "y"), ("x",))]
    return [f(put(*a), put(*b)) for a, b in pairs]


@cases
def natural_shape_changes():
    f = jax.jit(
        lambda a: (
            a.T,
            a[:, None],
            a.reshape(8, 4, 4),
            a.reshape(2, 4, 16),
            jnp.broadcast_to(a, (3, 8, 16)),
            jnp.expand_dims(a, 0),
            a.ravel(),
        )
    )
    return [f(put(*s)) for s in (("x", "y"), ("y",), ("x",), (None, "x"))]


@cases
def natural_reductions():
    f = jax.jit(
        lambda a: (
            a.sum(),
            a.sum(0),
            a.sum(1),
            a.max(0, keepdims=True),
            jnp.argmax(a, 1),
            a.mean(1),
            jnp.any(a > 0, 0),
        )
    )
    return [f(put(*s)) for s in (("x", "y"), ("y",), (None, "x"), (("x", "y"),))]


@cases
def natural_dots():
    f = jax.jit(lambda a, b: a @ b)
    pairs = [
        (("x",), (None, "y")),
        (("x", "y"), ("y",)),
        (("x",), ()),
        ((), (None, "y")),
        ((None, "y"), ("y",)),
        (("x", "y"), ("y", "x")),
        (("y",), (None, "x")),
    ]
    return [f(put(*a), put(*b, shape=(16, 8))) for a, b in pairs]


@cases
def natural_batched_dots():
    f = jax.jit(lambda a, b: jnp.einsum("bij,bjk->bik", a, b))
    pairs = [
        (("x",), ("x",)),
        (("x", "y"), ("x",)),
        (("x",), ("x", None, "y")),
        (("x", None, "y"), ("x", "y")),
    ]
    return [f(put(*a, shape=(4, 8, 16)), put(*b, shape=(4, 16, 8))) for a, b in pairs]


@cases
def natural_slices_and_updates():
    f = jax.jit(
        lambda a, i: (
            a[:, :4],
            a[0],
            a[i],
            lax.dynamic_slice(a, (i, 0), (2, 16)),
            lax.dynamic_update_slice(a, a[:2] * 2, (i, 0)),
            a.at[i].set(0),
        )
    )
    return [f(put(*s), 3) for s in (("x",), ("y",), (None, "y"), ("x", "y"))]


@cases
def natural_concatenations():
    f = jax.jit(
        lambda a, b: (
            jnp.concatenate([a, b], 0),
            jnp.concatenate([a, b], 1),
            jnp.stack([a, b]),
            jnp.pad(a, ((0, 0), (1, 1))),
            jnp.flip(a, 1),
            jnp.roll(b, 1, 1),
        )
    )
    return [f(put(*s), put(*s)) for s in (("x",), (None, "y"), ("x", "y"))]


@cases
def natural_gathers():
    f = jax.jit(lambda t, i: (t[i], jnp.take(t, i, axis=1), jax.nn.one_hot(i, 8) @ t))
    return [
        f(put(*s), jax.device_put(np.array([1, 5, 2, 7]), on(*r)))
        for s in (("x",), (None, "y"))
        for r in ((), ("x",))
    ]


@cases
def natural_loops():
    def f(a):
        c, ys = lax.scan(lambda c, x: (c + x, c * 2), a[0], a)
        w = lax.fori_loop(0, 3, lambda i, v: v * 2, a)
        z = lax.while_loop(lambda v: v.sum() < 100, lambda v: v * v + 1, a)
        return c, ys, w, z, lax.cond(a[0, 0] > 0, lambda: a, lambda: a * 2)

    return [jax.jit(f)(put(*s)) for s in ((None, "y"), ("x", "y"), ("x",))]


@cases
def natural_sorts_and_scans():
    f = jax.jit(
        lambda a: (
            jnp.sort(a, 1),
            jnp.sort(a, 0),
            jnp.cumsum(a, 1),
            jax.nn.softmax(a),
            lax.top_k(a, 3),
            jnp.argsort(a, 1),
        )
    )
    return [f(put(*s)) for s in (("x",), ("x", "y"), (None, "y"))]


@cases
def natural_convolutions():
    f = jax.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))
    return [
        f(put(*s, shape=(8, 4, 8, 8)), put(*k, shape=(8, 4, 3, 3)))
        for s, k in ((("x",), ()), ((), ("y",)), (("x",), ("y",)), ((None, None, "x"), ()))
    ]


@cases
def natural_random_outputs():
    f = jax.jit(
        lambda k: (
            jax.random.normal(k, (8, 16)),
            jax.random.split(k, 8),
            jax.random.permutation(k, 16),
        )
    )
    return f(jax.random.key(3)), jax.jit(
        lambda k: jax.random.uniform(k, (8, 16)), out_shardings=on("x", "y")
    )(jax.random.key(1))


@cases
def random_with_and_without_partitionable():
    out = []
    for flag in (True, False):
        with jax.threefry_partitionable(flag):
            f = jax.jit(lambda k: jax.random.normal(k, (8, 16)), out_shardings=on("x", "y"))
            out += [f(jax.random.key(0)), f(jax.random.PRNGKey(7))]
            out += [
                jax.jit(lambda k: jax.random.bits(k, (7, 5)), out_shardings=on())(jax.random.key(2))
            ]
    return out


@cases
def rbg_keys():
    f = jax.jit(lambda k: jax.random.normal(k, (8, 16)), out_shardings=on("x", "y"))
    return [f(jax.random.key(5, impl=i)) for i in ("rbg", "unsafe_rbg")]


@cases
def explicit_results_and_types():
    x = jax.device_put(ramp(8, 16), on("x", "y", mesh=EXPLICIT))
    seen = []

    @jax.jit
    def f(a):
        b = jax.sharding.reshard(a, P("y", "x"))
        c = jnp.sin(b) @ jax.sharding.reshard(a.T, P("x", None))
        seen.append([str(jax.typeof(v)) for v in (a, b, c, a.sum(0), a[None], a.T)])
        return b, c, a.sum(0), a.T, a[None], jnp.stack([a, a]), jnp.concatenate([a, a], 1)

    with jax.set_mesh(EXPLICIT):
        out = f(x)
        return out, seen, [str(jax.typeof(v)) for v in out]
