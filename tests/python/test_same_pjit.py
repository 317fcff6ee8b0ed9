"""jit over several devices as under stock JAX: shardings, compiled objects, transformations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, SingleDeviceSharding
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, Cases, on, put, ramp

cases = Cases()
ONE_DIM = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


# --- Shardings of arguments and results


@cases
def all_given():
    f = jax.jit(
        lambda a, b: (a @ b, a.sum()),
        in_shardings=(on("x", "y"), on("y")),
        out_shardings=(on("x"), on()),
    )
    return f(ramp(8, 16), ramp(16, 8))


@cases
def one_prefix_for_all():
    f = jax.jit(
        lambda t: {"a": t["a"] * 2, "b": [t["b"] + 1]}, in_shardings=on("x"), out_shardings=on("y")
    )
    return f({"a": ramp(8, 4), "b": ramp(8)})


@cases
def trees_of_shardings():
    f = jax.jit(
        lambda p, x: (p, {"y": x @ p["w"] + p["b"]}),
        in_shardings=({"w": on(None, "y"), "b": on("y")}, on("x")),
        out_shardings=({"w": on(None, "y"), "b": on("y")}, {"y": on("x", "y")}),
    )
    return f({"w": ramp(16, 8), "b": ramp(8)}, ramp(8, 16))


@cases
def specs_under_set_mesh():
    with jax.set_mesh(AUTO):
        f = jax.jit(lambda a: a * 2, in_shardings=P("x", "y"), out_shardings=P("y"))
        return f(ramp(8, 16)), jax.jit(lambda a: a, out_shardings=P())(ramp(4))


@cases
def none_among_shardings():
    f = jax.jit(
        lambda a, b: (a + 1, b + a), in_shardings=(None, on("x")), out_shardings=(on("y"), None)
    )
    return f(put("x", "y"), ramp(8, 16))[0]


@cases
def inputs_are_resharded_to_what_is_given():
    f = jax.jit(lambda a: a * 2, in_shardings=on("x"), out_shardings=on("x"))
    return f(jax.device_put(ramp(8, 16), jax.devices()[0])), f(
        jax.device_put(jnp.ones((8, 16)), jax.devices()[0])
    )


@cases
def committed_input_that_disagrees_is_an_error():
    return jax.jit(lambda a: a * 2, in_shardings=on("x"))(put("y"))


@cases
def single_device_sharding_given_with_a_mesh_is_an_error():
    f = jax.jit(lambda a, b: a + b, in_shardings=(on("x"), SingleDeviceSharding(jax.devices()[1])))
    return f(ramp(8, 16), ramp(8, 16))


@cases
def positional_and_gspmd_shardings():
    from jax._src.sharding_impls import GSPMDSharding
    from jaxlib import xla_client as xc

    s = GSPMDSharding(jax.devices(), xc.HloSharding.iota_tile((4, 2)))
    f = jax.jit(lambda a: a * 2, in_shardings=s, out_shardings=s)
    return np.asarray(f(ramp(8, 16)))


@cases(shardings=False)
def unspecified_everywhere():
    return jax.jit(lambda a, b: (a @ b, a.T, a.sum(0), b * 2, jnp.ones(4)))(
        put("x", "y"), put("y", None, shape=(16, 8))
    )


@cases
def unused_and_returned_arguments():
    f = jax.jit(lambda a, b, c: (c, a, a), in_shardings=on("x"), out_shardings=on("x"))
    return f(ramp(8, 4), ramp(8), ramp(8, 2))


@cases
def keep_unused():
    f = jax.jit(
        lambda a, b: a + 1, in_shardings=(on("x"), on("y")), out_shardings=on("x"), keep_unused=True
    )
    return f(ramp(8, 4), ramp(8)), str(f.lower(ramp(8, 4), ramp(8)).args_info)


@cases
def static_arguments_and_names():
    @functools.partial(jax.jit, static_argnums=1, static_argnames="k", out_shardings=on("x"))
    def f(a, n, k=2):
        return a * n + k

    return f(put("x"), 3), f(put("x"), 3, k=5)


@cases
def constants_only():
    f = jax.jit(
        lambda: (jnp.arange(8.0), jnp.eye(4), 3, jnp.zeros((8, 4))),
        out_shardings=(on("x"), on("x", "y"), on(), on(("x", "y"))),
    )
    return f()


@cases
def closed_over_sharded_arrays():
    w, v = put("x", "y"), put("y")
    return jax.jit(lambda a: a @ w.T + v.sum(), out_shardings=on("x"))(put("y"))


@cases
def zero_sized_and_scalars():
    f = jax.jit(lambda e, s, z: (e * 2, s + 1, z.sum(), jnp.zeros((0, 3))), out_shardings=on())
    return f(ramp(0, 4), 3, jnp.zeros((4, 0)))


@cases
def zero_sized_and_split():
    x = jax.device_put(np.zeros((0, 8), np.float32), on(None, "y"))
    f = jax.jit(
        lambda e: (e.T @ e, e.sum(0), jnp.concatenate([e, jnp.ones((2, 8))])), out_shardings=on()
    )
    return f(x)


@cases
def very_many_arguments():
    n = 300
    f = jax.jit(lambda *a: [v * k for k, v in enumerate(a)], out_shardings=on("x"))
    return f(*[put("x", shape=(8,)) for _ in range(n)])


@cases(ours=False)
def no_results():
    return jax.jit(lambda a: None)(put("x")), jax.jit(lambda a: {}, in_shardings=on("x"))(
        ramp(8, 4)
    )


@cases
def nested_containers_and_none():
    f = jax.jit(lambda t: (None, {"z": t[0], "a": (t[1]["q"], [])}), out_shardings=on("x"))
    return f((ramp(8), {"q": put("x")}))


# --- Constraints


@cases(shardings=False)
def constraints_of_all_kinds():
    def f(v):
        a = lax.with_sharding_constraint(v * 2, on("y", "x"))
        b = lax.with_sharding_constraint(jnp.sin(a), on(P.UNCONSTRAINED, "x"))
        c = lax.with_sharding_constraint(b.T, on(("x", "y"), None))
        return lax.with_sharding_constraint({"a": c, "b": b}, on(P.UNCONSTRAINED))

    return jax.jit(f)(put("x", "y"))


@cases
def constraint_of_the_result():
    return jax.jit(lambda v: lax.with_sharding_constraint(v * 2, on("y", "x")))(put("x", "y"))


@cases
def constraint_under_set_mesh():
    with jax.set_mesh(AUTO):
        return jax.jit(lambda v: lax.with_sharding_constraint(v * 2, P(None, "y")))(put("x"))


@cases
def constraint_outside_of_jit():
    return lax.with_sharding_constraint(put("x", "y"), on("y", "x"))


@cases
def constraint_of_wrong_rank():
    return jax.jit(lambda v: lax.with_sharding_constraint(v, on("x", "y", None)))(put("x"))


@cases
def constraint_without_mesh():
    return jax.jit(lambda v: lax.with_sharding_constraint(v, P("x")))(put("x"))


@cases
def constraint_that_does_not_divide():
    return jax.jit(lambda v: lax.with_sharding_constraint(v[:7], on("x")).sum())(put("x"))


@cases
def result_that_does_not_divide():
    return jax.jit(lambda v: v[:7], out_shardings=on("x"))(put("x"))


@cases
def argument_that_does_not_divide():
    return jax.jit(lambda v: v, in_shardings=on(None, "y"))(ramp(4, 7))


@cases
def constraint_and_gradient():
    def f(v):
        return lax.with_sharding_constraint(jnp.sin(v), on("y", "x")).sum()

    return jax.jit(jax.grad(f), out_shardings=on("x", "y"))(put("x", "y"))


@cases
def constraint_under_vmap():
    f = jax.vmap(lambda v: lax.with_sharding_constraint(v * 2, on("y")), spmd_axis_name="x")
    return jax.jit(f)(put("x", "y")), jax.jit(
        jax.vmap(lambda v: lax.with_sharding_constraint(v * 2, on("y")))
    )(put("x", "y"))


@cases
def constraint_with_a_layout():
    x = put("x", "y")
    fmt = Format(Layout(major_to_minor=(1, 0)), on("x", "y"))
    return jax.jit(
        lambda v: jax.experimental.layout.with_layout_constraint(
            v * 2, Layout(major_to_minor=(1, 0))
        ),
        out_shardings=on("x", "y"),
    )(x), fmt == x.format


# --- Donation, layouts, memories


@cases
def donation():
    a, b, c = put("x"), put("y", shape=(16, 8)), put()
    f = jax.jit(
        lambda a, b, c: (a + 1, b * 2), donate_argnums=(0, 1), out_shardings=(on("x"), on("y"))
    )
    out = f(a, b, c)
    return out, a.is_deleted(), b.is_deleted(), c.is_deleted()


@cases
def donation_of_names_and_trees():
    t = {"a": put("x"), "b": put("y")}
    f = jax.jit(
        lambda *, t: jax.tree.map(lambda v: v * 2, t), donate_argnames="t", out_shardings=None
    )
    out = f(t=t)
    return out, [v.is_deleted() for v in t.values()]


@cases
def donation_that_can_not_be_used():
    a = put("x")
    f = jax.jit(lambda a: a.sum(), donate_argnums=0, out_shardings=on())
    return f(a), a.is_deleted()


@cases
def donation_with_another_sharding_of_the_result():
    a = put("x")
    return jax.jit(lambda a: a + 1, donate_argnums=0, out_shardings=on(None, "x"))(
        a
    ), a.is_deleted()


@cases
def aliasing_in_the_program():
    f = jax.jit(
        lambda a, b: (b + 1, a * 2),
        donate_argnums=(0, 1),
        in_shardings=on("x"),
        out_shardings=on("x"),
    )
    text = f.lower(ramp(8, 4), ramp(8, 4)).compile().as_text()
    return text.splitlines()[0].count("may-alias"), "input_output_alias" in text


@cases
def layouts_given():
    fmt = Format(Layout(major_to_minor=(1, 0)), on("x", "y"))
    f = jax.jit(lambda a: a * 2, out_shardings=fmt)
    out = f(put("x", "y"))
    return (
        out,
        jax.jit(lambda a: a + 1, in_shardings=fmt, out_shardings=on("x", "y"))(out),
        jax.device_put(ramp(8, 16), fmt),
    )


@cases
def layouts_chosen():
    f = jax.jit(
        lambda a: a.T * 2,
        in_shardings=Format(Layout.AUTO, on("x", "y")),
        out_shardings=Format(Layout.AUTO, on("y", "x")),
    )
    compiled = f.lower(jax.ShapeDtypeStruct((8, 16), np.float32)).compile()
    (given,), _ = compiled.input_formats
    out = compiled(jax.device_put(ramp(8, 16), given))
    return np.asarray(out), str(compiled.input_formats), str(compiled.output_formats)


@cases
def wrong_layout_is_an_error():
    fmt = Format(Layout(major_to_minor=(1, 0)), on("x", "y"))
    f = jax.jit(lambda a: a * 2, in_shardings=Format(Layout((0, 1)), on("x", "y")))
    return f(jax.device_put(ramp(8, 16), fmt))


@cases
def memory_kinds_of_results():
    kinds = [m.kind for m in jax.devices()[0].addressable_memories()]
    out = []
    for kind in kinds:
        s = on("x", "y", memory_kind=kind)
        f = jax.jit(lambda a: a * 2, in_shardings=s, out_shardings=s)
        out.append(f(jax.device_put(ramp(8, 16), s)))
    return out, kinds


@cases
def pinned_host_results():
    s = on("x", memory_kind="pinned_host")
    return jax.jit(lambda a: a * 2, out_shardings=s)(put("x")), jax.device_put(put("x"), s)


@cases
def pinned_host_inputs():
    s = on("x", memory_kind="pinned_host")
    return jax.jit(
        lambda a: jax.device_put(a, jax.memory.Space.Device) * 2,
        in_shardings=s,
        out_shardings=on("x"),
    )(jax.device_put(ramp(8, 16), s))


@cases
def transfer_to_host_inside():
    f = jax.jit(
        lambda a: jax.device_put(a * 2, jax.memory.Space.Host),
        out_shardings=on("x", memory_kind="pinned_host"),
    )
    return f(put("x"))


@cases
def compute_on_host():
    from jax.experimental.compute_on import compute_on

    @jax.jit
    def f(a):
        with compute_on("device_host"):
            b = a * 2
        return b + 1

    return f(put("x", "y"))


@cases
def checkpoint_that_offloads():
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["z"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def f(a):
        b = jax.ad_checkpoint.checkpoint_name(jnp.sin(a), "z")
        return jnp.sum(jnp.sin(b) ** 2)

    return jax.jit(jax.grad(jax.checkpoint(f, policy=policy)), out_shardings=on("x"))(put("x"))


# --- Nested jit, caches


@cases
def nested_jit():
    inner = jax.jit(lambda v: jnp.sin(v) @ v.T)
    return jax.jit(lambda v: inner(v) + inner(v * 2), out_shardings=on("x"))(put("x", "y"))


@cases
def nested_jit_with_shardings():
    inner = jax.jit(lambda v: v * 2, in_shardings=on("y"), out_shardings=on("x", "y"))
    return jax.jit(lambda v: inner(v) + 1, out_shardings=on("x"))(put("x", "y"))


@cases
def nested_jit_inlined_and_static():
    inner = jax.jit(lambda v, k: v * k, inline=True, static_argnums=1)
    return jax.jit(lambda v: inner(v, 3) + inner(v, 4), out_shardings=on("x"))(put("x"))


@cases
def nested_donation():
    inner = jax.jit(lambda v: v + 1, donate_argnums=0)
    return jax.jit(lambda v: inner(v) * 2, out_shardings=on("x"))(put("x"))


@cases
def one_function_with_several_shardings():
    f = jax.jit(lambda v: v * 2)
    return f(put("x", "y")), f(put("y")), f(ramp(8, 16)), f._cache_size()


@cases
def compilations_are_cached():
    f = jax.jit(lambda v: v * 2, out_shardings=on("x"))
    for _ in range(3):
        f(put("x"))
    return f._cache_size()


@cases
def other_contexts_recompile():
    f = jax.jit(lambda v: v @ v.T, out_shardings=on("x"))
    with jax.default_matmul_precision("float32"):
        a = f(put("x"))
    with jax.enable_x64(True):
        b = f(put("x"))
    return a, b, f(put("x"))


# --- Transformations


def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


@cases
def gradients():
    w, x = put(None, "y", shape=(16, 8)), put("x")
    return jax.jit(
        jax.value_and_grad(loss, argnums=(0, 1)), out_shardings=(on(), (on(None, "y"), on("x")))
    )(w, x)


@cases(shardings=False)
def all_transformations():
    w, x = put(None, "y", shape=(16, 8)), put("x")
    v = put("x", shape=(8,))
    return (
        jax.jit(jax.grad(jax.checkpoint(loss)))(w, x),
        jax.jit(jax.jacfwd(lambda a: a**3))(v),
        jax.jit(jax.jacrev(lambda a: a**3))(v),
        jax.jit(jax.hessian(lambda a: jnp.sum(a**4)))(v),
        jax.jit(lambda a: jax.jvp(jnp.sin, (a,), (a,)))(x),
        jax.jit(lambda a: jax.vjp(jnp.cos, a)[1](a))(x),
        jax.jit(jax.vmap(lambda r: r @ r))(x),
        jax.jit(jax.vmap(jnp.outer))(x, x),
    )


@cases
def eager_transformations():
    x = put("x", "y")
    return jax.grad(lambda v: jnp.sum(jnp.sin(v)))(x), jnp.cumsum(x, 1)


@cases
def custom_rules():
    @jax.custom_jvp
    def f(v):
        return v**2

    f.defjvp(lambda p, t: (f(p[0]), 3 * p[0] * t[0]))

    @jax.custom_vjp
    def g(v, k):
        return v * k

    g.defvjp(lambda v, k: (g(v, k), (v, k)), lambda r, t: (t * 5 * r[1], jnp.sum(t * r[0])))
    x = put("x", "y")
    return jax.jit(jax.grad(lambda v: f(v).sum()), out_shardings=on("x"))(x), jax.jit(
        jax.grad(lambda v, k: g(v, k).sum(), (0, 1)), out_shardings=(on("x"), on())
    )(x, 2.0)


@cases
def control_flow():
    def f(v):
        def step(c, row):
            c = lax.cond(row.sum() > 3, lambda a: a + row, lambda a: a * 0.5, c)
            return c, (c.max(), row * 2)

        last, tops = lax.scan(step, v[0], v, unroll=2)
        a = lax.while_loop(
            lambda s: s[0].sum() < 1e4, lambda s: (s[0] * 2 + 1, s[1] + 1), (last, 0)
        )
        b = lax.fori_loop(0, 5, lambda i, s: s + i * v, v)
        c = lax.switch(v.astype(jnp.int32)[0, 0] % 3, [jnp.sin, jnp.cos, jnp.tanh], v)
        d = lax.map(lambda r: r.sum(), v, batch_size=4)
        return last, tops, a, b, c, d, lax.associative_scan(jnp.add, v)

    return jax.jit(f, out_shardings=on())(put("x", "y")), jax.jit(f, out_shardings=on())(
        put(None, "x")
    )


@cases
def gradients_of_control_flow():
    def f(w, x):
        out, _ = lax.scan(lambda c, m: (jnp.tanh(c @ m), None), x, w)
        return jnp.sum(out**2)

    return jax.jit(jax.grad(f, (0, 1)), out_shardings=(on(None, None, "y"), on("x")))(
        put(None, None, "y", shape=(3, 16, 16)), put("x")
    )


@cases
def reversed_scan_and_carried_tuples():
    def f(v):
        return lax.scan(lambda c, r: ((c[1], c[0] + r), c[0]), (v[0], v[1]), v, reverse=True)

    return jax.jit(f, out_shardings=on())(put("x", "y"))


@cases
def custom_root_and_linear_solve():
    def f(v):
        return lax.custom_root(
            lambda y: y**3 - v,
            jnp.ones_like(v),
            lambda g, y0: lax.fori_loop(0, 30, lambda i, y: y - g(y) / (3 * y**2), y0),
            lambda g, y: y / g(jnp.ones_like(y)),
        )

    return jax.jit(f, out_shardings=on("x"))(jnp.abs(put("x", shape=(8,))) + 1)


@cases
def vmap_of_everything():
    f = jax.vmap(
        lambda m, v: (jnp.linalg.norm(m), m @ v, lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v))
    )
    return jax.jit(f, out_shardings=on("x"))(
        put("x", None, "y", shape=(4, 8, 16)), put("x", shape=(4, 16))
    )
