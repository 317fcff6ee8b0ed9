"""Explicit mode: results, types and, where there is one natural way, the kinds of collectives."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from same_as_stock import EXPLICIT, Cases, on, ramp

cases = Cases()
KINDS = "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|ragged-all-to-all"


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


def ex(*spec, shape=(8, 16)):
    return jax.device_put(ramp(*shape), NamedSharding(EXPLICIT, P(*spec)))


def kinds(f, *args, **jit):
    """The kinds of collectives of the executable."""
    text = jax.jit(f, **jit).lower(*args).compile().as_text()
    return sorted(set(re.findall(rf" ({KINDS})(?:-start)?\(", text)))


def typed(f, *args, one_way=True):
    """Results, their types and the kinds of collectives, in explicit mode.

    one_way: else several ways are sensible, and gspmd takes what sends less.
    """
    with jax.set_mesh(EXPLICIT):
        out = jax.jit(f)(*args)
        types = [str(jax.typeof(v)) for v in jax.tree.leaves(out)]
        return out, types, kinds(f, *args) if one_way else None


@cases
def contraction_to_whole():
    return typed(
        lambda a, b: jnp.einsum("xy,yz->xz", a, b, out_sharding=P("x", None)),
        ex("x", "y"),
        ex("y", shape=(16, 8)),
    )


@cases
def contraction_to_scattered():
    return typed(
        lambda a, b: jnp.einsum("xy,yz->xz", a, b, out_sharding=P("x", "y")),
        ex("x", "y"),
        ex("y", shape=(16, 8)),
        one_way=False,
    )


@cases
def contraction_of_both_axes():
    return typed(
        lambda a, b: jnp.einsum("xy,yz->xz", a, b, out_sharding=P(None, None)),
        ex(None, ("x", "y")),
        ex(("x", "y"), shape=(16, 8)),
    )


@cases
def plain_dots_in_explicit_mode():
    return [
        typed(lambda a, b: a @ b, ex(*a), ex(*b, shape=(16, 8)))
        for a, b in ((("x",), (None, "y")), ((), (None, "y")), (("x", None), (None, None)))
    ]


@cases
def batched_dots_in_explicit_mode():
    return typed(
        lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
        ex("x", None, None, shape=(4, 8, 16)),
        ex("x", None, "y", shape=(4, 16, 8)),
    )


@cases
def reshards():
    ways = [
        (("x",), ()),
        ((), ("x",)),
        (("x", None), (None, "x")),
        (("x", "y"), ("y", "x")),
        ((("x", "y"),), ("x",)),
        (("x",), (("x", "y"),)),
        (("y",), ("x",)),
        ((("x", "y"),), (("y", "x"),)),
    ]
    return [typed(lambda a, s=to: reshard(a, P(*s)), ex(*frm), one_way=False) for frm, to in ways]


@cases
def reductions_in_explicit_mode():
    return [
        typed(lambda a: (a.sum(0), a.sum(), a.max(1), a.mean()), ex(*s))
        for s in (("x", "y"), ("x",), (None, "y"))
    ]


@cases
def gradient_of_an_explicit_layer():
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    return typed(jax.grad(loss), ex(None, "y", shape=(16, 8)), ex("x"))


@cases
def explicit_reshape_and_transpose():
    return [
        typed(
            lambda a: (
                a.T,
                a.reshape(2, 4, 16, out_sharding=P("x", None, None)),
                lax.broadcast_in_dim(a, (3, 8, 16), (1, 2)),
            ),
            ex("x"),
        )
    ]


@cases
def explicit_gather_and_at():
    i = np.array([1, 3, 5, 2])
    return typed(
        lambda a: (a.at[i].get(out_sharding=P(None, "y")), a[:, 2:6], a.at[:, 3].set(0.0)),
        ex(None, "y"),
    )


@cases
def explicit_scan_and_cond():
    def f(a):
        c, ys = lax.scan(lambda c, x: (c + x, c * 2), a[0], a)
        return (
            c,
            ys,
            lax.cond(c[0] > 0, lambda: a, lambda: a * 2),
            lax.fori_loop(0, 3, lambda i, v: v + 1, a),
        )

    return typed(f, ex(None, "y"))


@cases
def explicit_unreduced():
    def f(a, b):
        c = jnp.einsum("xy,yz->xz", a, b, out_sharding=P(None, None, unreduced={"y"}))
        return reshard(c, P())

    return typed(f, ex(None, "y"), ex("y", shape=(16, 8)))


@cases
def explicit_unreduced_scattered():
    def f(a, b):
        c = jnp.einsum("xy,yz->xz", a, b, out_sharding=P("x", None, unreduced={"y"}))
        return reshard(c, P("x", "y"))

    return typed(f, ex("x", "y"), ex("y", shape=(16, 8)), one_way=False)


@cases
def explicit_iota_and_creation():
    def f(a):
        return (
            jnp.zeros((8, 16), out_sharding=P("x", "y")) + a,
            lax.broadcasted_iota(jnp.float32, (8, 16), 0, out_sharding=P("x", "y")),
            jnp.arange(16, out_sharding=P("y")),
            jnp.full_like(a, 3),
            jnp.ones_like(a),
        )

    return typed(f, ex("x", "y"))


@cases
def explicit_vmap():
    return typed(
        jax.vmap(lambda a, b: jnp.sin(a) @ b), ex("x", shape=(8, 16)), ex("x", shape=(8, 16))
    )


@cases
def explicit_random():
    def f(k):
        return jax.random.normal(k, (8, 16), out_sharding=P("x", "y"))

    return typed(f, jax.random.key(1))


@cases
def explicit_split_concatenate():
    return typed(
        lambda a, b: (
            jnp.concatenate([a, b], 0),
            jnp.split(a, 2, 0),
            jnp.stack([a, b]),
            jnp.where(a > 0, a, b),
        ),
        ex(None, "y"),
        ex(None, "y"),
    )


@cases
def explicit_cumsum_sort_argmax():
    return typed(
        lambda a: (jnp.cumsum(a, 1), jnp.sort(a, 1), jnp.argmax(a, 1), jnp.flip(a, 1), a[::2, ::2]),
        ex("x"),
    )


@cases
def roll_and_halo():
    return kinds(
        lambda a: jnp.roll(a, 1, 0), ramp(8, 16), in_shardings=on("y"), out_shardings=on("y")
    )


@cases
def elementwise_has_none():
    return kinds(
        lambda a, b: jnp.sin(a) * b + jnp.cumsum(a, 1),
        ramp(8, 16),
        ramp(8, 16),
        in_shardings=on("y"),
        out_shardings=on("y"),
    )
