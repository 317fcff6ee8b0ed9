"""shard_map as under stock JAX: all and some axes manual, nested, collectives, transformations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, EXPLICIT, Cases, on, permuted, put, ramp

cases = Cases()
smap = functools.partial(jax.shard_map, mesh=AUTO)


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


@cases
def psum_of_both_axes():
    f = smap(lambda v: lax.psum(v, ("x", "y")), in_specs=P("x", "y"), out_specs=P())
    return jax.jit(f)(put("x", "y"))


@cases
def eager_shard_map():
    return smap(lambda v: lax.psum(v, "x"), in_specs=P("x"), out_specs=P())(put("x"))


@cases
def every_collective():
    def body(v):
        return (
            lax.psum(v, "x"),
            lax.pmax(v, "y"),
            lax.pmin(v, ("x", "y")),
            lax.pmean(v, "x"),
            lax.all_gather(v, "y"),
            lax.all_gather(v, "y", axis=1, tiled=True),
            lax.psum_scatter(v, "y", scatter_dimension=0, tiled=True),
            lax.psum_scatter(v, "y", scatter_dimension=1),
            lax.all_to_all(v, "y", 0, 1),
            lax.all_to_all(v, "y", 0, 1, tiled=True),
            lax.ppermute(v, "y", [(0, 1), (1, 2), (2, 3), (3, 0)]),
            lax.ppermute(v, "x", [(0, 1)]),
            lax.pshuffle(v, "y", [2, 0, 3, 1]),
        )

    f = smap(body, in_specs=P("x", "y"), out_specs=P(("x", "y")), check_vma=False)
    return jax.jit(f)(put("x", "y"))


@cases
def several_axes_in_one_collective():
    def body(v):
        return (
            lax.all_gather(v, ("x", "y"), tiled=True),
            lax.all_gather(v, ("y", "x"), tiled=True),
            lax.psum_scatter(v, ("x", "y"), tiled=True),
            lax.psum_scatter(v, ("y", "x"), tiled=True),
            lax.all_to_all(v, ("x", "y"), 0, 1, tiled=True),
            lax.all_to_all(v, ("y", "x"), 0, 1, tiled=True),
            lax.ppermute(v, ("y", "x"), [(i, (3 * i + 1) % 8) for i in range(8)]),
        )

    f = smap(body, in_specs=P("x", "y"), out_specs=P(("x", "y")), check_vma=False)
    return jax.jit(f)(put("x", "y", shape=(16, 32)))


@cases
def axis_index_groups():
    def body(v):
        g = [[0, 1], [2, 3]]
        return (
            lax.psum(v, "y", axis_index_groups=g),
            lax.all_gather(v, "y", axis_index_groups=g),
            lax.all_to_all(v, "y", 0, 0, axis_index_groups=g, tiled=True),
            lax.psum_scatter(v, "y", axis_index_groups=g, tiled=True),
        )

    f = smap(body, in_specs=P("x", "y"), out_specs=P(("x", "y")), check_vma=False)
    return jax.jit(f)(put("x", "y"))


@cases
def axis_index_and_size():
    def body():
        i = lax.axis_index("x") * 10 + lax.axis_index("y") + lax.axis_size("y")
        return i.reshape(1, 1), lax.axis_index(("y", "x")).reshape(1, 1)

    return jax.jit(smap(body, in_specs=(), out_specs=P("x", "y")))()


@cases
def no_inputs_replicated_output():
    return jax.jit(smap(lambda: jnp.ones((3, 4)), in_specs=(), out_specs=P()))()


@cases
def scalars_in_and_out():
    f = smap(
        lambda s, v: (s * 2, lax.psum(v.sum() * s, ("x", "y"))),
        in_specs=(P(), P("x", "y")),
        out_specs=(P(), P()),
    )
    return jax.jit(f)(3.0, put("x", "y"))


@cases
def pytrees_and_prefix_specs():
    def body(d, t):
        return {"a": d["a"] + t[0], "b": (lax.psum(d["b"], "y"), t[1])}

    f = smap(body, in_specs=(P("x"), P("x")), out_specs={"a": P("x"), "b": P("x")}, check_vma=False)
    return jax.jit(f)({"a": ramp(8, 4), "b": ramp(4)}, (ramp(8, 4), ramp(2, 3)))


@cases
def gradient_of_collectives():
    def body(w, v):
        h = jnp.tanh(v @ w)
        g = lax.all_gather(h, "y", axis=1, tiled=True)
        s = lax.psum_scatter(g, "x", scatter_dimension=1, tiled=True)
        p = lax.ppermute(s, "y", [(i, (i + 1) % 4) for i in range(4)])
        return lax.psum(jnp.sum(p**2), ("x", "y"))

    f = smap(body, in_specs=(P(None, "y"), P("x")), out_specs=P())
    return jax.jit(jax.value_and_grad(f, argnums=(0, 1)))(ramp(16, 8), put("x"))


@cases
def gradient_without_check_vma():
    f = smap(
        lambda v: lax.psum(jnp.sin(v), "x") * 2,
        in_specs=P("x", "y"),
        out_specs=P(None, "y"),
        check_vma=False,
    )
    return jax.jit(jax.grad(lambda v: f(v).sum()))(put("x", "y"))


@cases
def jvp_and_linearize():
    f = smap(lambda v: lax.psum(v * jnp.cos(v), "y"), in_specs=P("x", "y"), out_specs=P("x"))
    x = put("x", "y")
    out, linear = jax.linearize(jax.jit(f), x)
    return jax.jit(lambda a, b: jax.jvp(f, (a,), (b,)))(x, x), out, linear(x)


@cases
def second_derivative():
    f = smap(lambda v: lax.psum(jnp.sum(v**3), ("x", "y")), in_specs=P("x", "y"), out_specs=P())
    return jax.jit(jax.grad(lambda v: jnp.sum(jax.grad(f)(v) ** 2)))(put("x", "y"))


@cases
def vmap_of_shard_map():
    f = smap(lambda v: lax.psum(v, "x") * 2, in_specs=P("x", "y"), out_specs=P(None, "y"))
    return jax.jit(jax.vmap(f))(put(None, "x", "y", shape=(3, 8, 16)))


@cases
def vmap_with_spmd_axis_name():
    f = jax.shard_map(lambda v: lax.psum(v, "y"), mesh=AUTO, in_specs=P("y"), out_specs=P())
    return jax.jit(jax.vmap(f, spmd_axis_name="x"))(put("x", "y"))


@cases
def vmap_inside():
    f = smap(
        lambda v: jax.vmap(lambda r: lax.psum(r, "y"))(v), in_specs=P("x", "y"), out_specs=P("x")
    )
    return jax.jit(f)(put("x", "y"))


@cases
def scan_inside():
    def body(v):
        def step(c, r):
            c = lax.ppermute(c, "x", [(0, 1), (1, 0)]) + r
            return c, lax.psum(c, "y")

        return lax.scan(step, v[0], v)

    f = smap(body, in_specs=P("x", "y"), out_specs=(P(("x", "y")), P("x")), check_vma=False)
    return jax.jit(f)(put("x", "y"))


@cases
def shard_map_in_scan():
    f = smap(
        lambda c, r: lax.psum(c * r, "x") / 8,
        in_specs=(P(None, "y"), P("x", "y")),
        out_specs=P(None, "y"),
    )

    def step(c, r):
        c = f(c, r)
        return c, c.sum()

    return jax.jit(lambda c, xs: lax.scan(step, c, xs))(
        put(None, "y", shape=(4, 16)), put(None, "x", "y", shape=(5, 8, 16))
    )


@cases(shardings=False)
def shard_map_in_cond():
    f = smap(lambda v: lax.psum(v, "x"), in_specs=P("x"), out_specs=P())
    g = jax.jit(lambda p, v: lax.cond(p, lambda a: f(a), lambda a: a[:4] * 2, v))
    return g(True, put("x")), g(False, put("x"))


@cases
def shard_map_in_while():
    f = smap(lambda v: lax.pmean(v, "x") * 1.5 + 1, in_specs=P("x"), out_specs=P())

    def body(v):
        return jnp.concatenate([f(v), f(v)])

    return jax.jit(lambda v: lax.while_loop(lambda a: a.sum() < 1e4, body, v))(put("x"))


@cases
def cond_inside_with_uniform_predicate():
    def body(v):
        p = lax.psum(v.sum(), ("x", "y")) > 0
        return lax.cond(p, lambda a: lax.psum(a, "y"), lambda a: lax.pmax(a, "y"), v)

    f = smap(body, in_specs=P("x", "y"), out_specs=P("x"))
    return jax.jit(f)(put("x", "y"))


@cases
def cond_inside_that_differs_by_device():
    def body(v):
        return lax.cond(lax.axis_index("x") == 0, lambda a: a * 2, lambda a: -a, v)

    return jax.jit(smap(body, in_specs=P("x", "y"), out_specs=P("x", "y")))(put("x", "y"))


@cases
def while_inside_that_differs_by_device():
    def body(v):
        n = lax.axis_index("y")
        return lax.fori_loop(0, n, lambda i, a: a + 1, v)

    return jax.jit(smap(body, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False))(
        put("x", "y")
    )


@cases
def switch_inside():
    def body(v):
        return lax.switch(lax.axis_index("y"), [lambda a, k=k: a * k for k in range(4)], v)

    return jax.jit(smap(body, in_specs=P("x", "y"), out_specs=P("x", "y")))(put("x", "y"))


@cases(shardings=False)
def some_axes_manual():
    def body(v):
        assert v.shape == (4, 16)
        return lax.psum(v, "x") @ jnp.ones((16, 8))

    f = smap(body, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    return jax.jit(f)(put("x", "y"))


@cases(shardings=False)
def some_axes_manual_with_constraint_inside():
    def body(v):
        v = lax.with_sharding_constraint(v * 2, P(None, "y"))
        return lax.all_gather(v, "x", tiled=True)

    f = smap(body, in_specs=P("x"), out_specs=P(), axis_names={"x"}, check_vma=False)
    with jax.set_mesh(AUTO):
        return jax.jit(f)(put("x", "y"))


@cases(shardings=False)
def nested_shard_map():
    def inner(v):
        return lax.psum(v, "y") * lax.axis_index("y")

    def outer(v):
        g = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
        return lax.psum(g(v), "x")

    f = smap(outer, in_specs=P("x"), out_specs=P(), axis_names={"x"}, check_vma=False)
    return jax.jit(f)(put("x", "y"))


@cases(shardings=False)
def gradient_with_some_axes_manual():
    def body(w, v):
        return lax.psum(jnp.sum(jnp.tanh(v @ w) ** 2), "x")

    f = smap(body, in_specs=(P(), P("x")), out_specs=P(), axis_names={"x"})
    return jax.jit(jax.grad(f, argnums=(0, 1)))(put("y", None, shape=(16, 8)), put("x", "y"))


@cases(shardings=False)
def scan_with_some_axes_manual():
    def body(v):
        def step(c, r):
            return c + lax.psum(r, "x"), c.sum()

        return lax.scan(step, jnp.zeros(16), v)

    f = smap(body, in_specs=P("x"), out_specs=(P(), P()), axis_names={"x"}, check_vma=False)
    return jax.jit(f)(put("x", "y"))


@cases
def explicit_mesh():
    f = jax.shard_map(
        lambda v: lax.psum(v, "x"), mesh=EXPLICIT, in_specs=P("x", "y"), out_specs=P(None, "y")
    )
    return jax.jit(f)(put("x", "y", mesh=EXPLICIT))


@cases
def explicit_mesh_some_axes_manual():
    with jax.set_mesh(EXPLICIT):

        @jax.jit
        @functools.partial(jax.shard_map, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        def f(v):
            assert jax.typeof(v).sharding.spec == P(None, "y")
            return jnp.sin(v) * lax.axis_index("x")

        return f(put("x", "y", mesh=EXPLICIT))


@cases
def mesh_from_context():
    with jax.set_mesh(AUTO):
        f = jax.shard_map(lambda v: lax.psum(v, "x"), in_specs=P("x"), out_specs=P())
        return jax.jit(f)(ramp(8, 16)), f(ramp(8, 16))


@cases
def decorator_and_partial():
    @jax.jit
    @functools.partial(jax.shard_map, mesh=AUTO, in_specs=(P("x"), P("x")), out_specs=P("x"))
    def f(a, b):
        return a @ b.T

    return f(ramp(8, 4), ramp(8, 4))


@cases
def permuted_devices():
    mesh = permuted()
    f = jax.shard_map(
        lambda v: (
            lax.ppermute(v, "y", [(i, (i + 1) % 4) for i in range(4)]),
            lax.all_gather(v, "x", tiled=True),
        ),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=(P("x", "y"), P(None, "y")),
        check_vma=False,
    )
    return jax.jit(f)(put("x", "y", mesh=mesh))


@cases
def remat_and_custom_vjp():
    @jax.custom_vjp
    def g(v):
        return lax.psum(v**2, "x")

    g.defvjp(lambda v: (g(v), v), lambda v, t: (2 * v * t,))
    f = smap(
        jax.checkpoint(lambda v: g(jnp.sin(v))),
        in_specs=P("x", "y"),
        out_specs=P(None, "y"),
        check_vma=False,
    )
    return jax.jit(jax.grad(lambda v: f(v).sum()))(put("x", "y"))


@cases
def random_keys():
    def body(k):
        k = jax.random.fold_in(k, lax.axis_index("x") * 4 + lax.axis_index("y"))
        return jax.random.normal(k, (2, 3))

    f = smap(body, in_specs=P(), out_specs=P("x", "y"), check_vma=False)
    return jax.jit(f)(jax.random.key(3)), jax.jit(f)(jax.random.key(3, impl="rbg"))


@cases
def sharded_keys():
    keys = jax.random.split(jax.random.key(0), 8)
    f = smap(
        lambda k: jax.vmap(lambda q: jax.random.uniform(q, (4,)))(k),
        in_specs=P(("x", "y")),
        out_specs=P(("x", "y")),
    )
    return jax.jit(f)(keys), keys


@cases
def dtypes():
    def body(a, b, c, d, e):
        return (
            lax.psum(a, "x"),
            lax.all_gather(b, "x", tiled=True),
            lax.pmax(c, "x"),
            lax.psum(d, "x"),
            lax.ppermute(e, "x", [(0, 1), (1, 0)]),
        )

    f = smap(body, in_specs=P("x"), out_specs=(P(), P(), P(), P(), P("x")), check_vma=False)
    return jax.jit(f)(
        ramp(8, 4, dtype=jnp.bfloat16),
        ramp(8, 4) > 0,
        ramp(8, dtype=np.int8),
        ramp(8, 2).astype(np.complex64),
        ramp(8, 4).astype(jnp.float8_e4m3fn),
    )


@cases
def psum_of_bool_and_of_constants():
    def body(v):
        return lax.psum(1, "x") * v, lax.psum(v > 0, "y"), lax.psum(2.5, ("x", "y")) + v

    f = smap(body, in_specs=P("x", "y"), out_specs=(P("x", "y"), P("x"), P("x", "y")))
    return jax.jit(f)(put("x", "y"))


@cases
def pvary_and_varying_outputs():
    def body(v):
        return lax.pcast(v, "y", to="varying") * lax.axis_index("y")

    return jax.jit(smap(body, in_specs=P("x"), out_specs=P("x", "y")))(put("x"))


@cases
def callbacks_inside():
    def body(v):
        return jax.pure_callback(
            lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(v.shape, v.dtype), v
        )

    return jax.jit(smap(body, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False))(
        put("x", "y")
    )


@cases
def pmap_collectives():
    f = jax.pmap(
        lambda v: (
            lax.psum(v, "i"),
            lax.all_gather(v, "i"),
            lax.axis_index("i"),
            lax.ppermute(v, "i", [(k, (k + 1) % 8) for k in range(8)]),
        ),
        axis_name="i",
    )
    return f(ramp(8, 5))


@cases
def pmap_of_several_arguments():
    f = jax.pmap(
        lambda a, b, c: (a + c, lax.pmean(b, "i")),
        axis_name="i",
        in_axes=(0, 1, None),
        out_axes=(0, None),
    )
    return f(ramp(8, 5), ramp(5, 8), ramp(5))


@cases
def pmap_static_and_donated():
    f = jax.pmap(lambda k, v: v * k, static_broadcasted_argnums=0, donate_argnums=1)
    return f(3, ramp(8, 2))


@cases
def pmap_nested_in_vmap_and_grad():
    f = jax.pmap(lambda v: lax.psum(v**2, "i"), axis_name="i")
    return jax.vmap(f, in_axes=1)(ramp(8, 3)), jax.grad(lambda v: f(v).sum())(ramp(8))


@cases
def pmap_with_fewer_devices():
    return jax.pmap(lambda v: v * 2, devices=jax.devices()[2:5])(ramp(3, 4))


@cases
def wrong_spec_rank():
    return jax.jit(smap(lambda v: v, in_specs=P("x", "y", None), out_specs=P()))(ramp(8, 8))


@cases(ours=False)
def size_that_does_not_divide():
    return jax.jit(smap(lambda v: v, in_specs=P("x"), out_specs=P("x")))(ramp(7, 8))


@cases(ours=False)
def output_that_is_not_replicated():
    return jax.jit(smap(lambda v: v, in_specs=P("x"), out_specs=P()))(ramp(8, 8))


@cases(ours=False)
def unknown_axis():
    return jax.jit(smap(lambda v: lax.psum(v, "z"), in_specs=P("x"), out_specs=P("x")))(ramp(8, 8))


@cases
def empty_and_unit_arrays():
    f = smap(
        lambda a, b: (lax.psum(a, "x"), lax.all_gather(b, "x", tiled=True)),
        in_specs=P("x"),
        out_specs=P(),
        check_vma=False,
    )
    return jax.jit(f)(ramp(0, 4), ramp(2, 1))


@cases
def specs_of_several_axes_on_one_dim():
    f = smap(lambda v: lax.psum(v, "y"), in_specs=P(("x", "y"), None), out_specs=P("x"))
    g = smap(
        lambda v: v * 2, in_specs=P(("y", "x")), out_specs=P(None, ("y", "x")), check_vma=False
    )
    return jax.jit(f)(put(("x", "y"))), jax.jit(g)(put(("x", "y")))


@cases
def jit_inside_and_closure():
    w = put("x")

    @jax.jit
    def inner(v):
        return jnp.sin(v) + lax.axis_index("x")

    return jax.jit(smap(lambda v: inner(inner(v)), in_specs=P("x"), out_specs=P("x")))(w)


@cases
def unreduced_dot_then_psum():
    f = smap(lambda a, b: lax.psum(a @ b, "y"), in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
    return jax.jit(f)(put("x", "y"), put("y", shape=(16, 8)))


@cases
def ragged_all_to_all():
    def body(v, out, a, b, c, d):
        return lax.ragged_all_to_all(v, out, a[0], b[0], c[0], d[0], axis_name="x")

    f = smap(body, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    s = np.array([[2, 2], [2, 2]], np.int32)
    o = np.array([[0, 2], [0, 2]], np.int32)
    oo = np.array([[0, 0], [2, 2]], np.int32)
    return jax.jit(f)(ramp(8), np.zeros(8, np.float32), o, s, oo, s)


@cases
def sort_and_cumsum_inside():
    f = smap(
        lambda v: (jnp.sort(v, 1), jnp.cumsum(v, 0), jnp.argmax(v, 1), lax.top_k(v, 3)),
        in_specs=P("x"),
        out_specs=P("x"),
    )
    return jax.jit(f)(put("x"))


@cases
def results_that_mix():
    f = smap(lambda v: lax.psum(v, "y"), in_specs=P("x", "y"), out_specs=P("x"))
    g = jax.jit(lambda v: (f(v * 2) @ jnp.ones((4, 4)), jnp.sum(v)), out_shardings=(on("x"), on()))
    return g(put("x", "y"))
