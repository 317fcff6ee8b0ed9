"""Programs over the public operators of jax.lax: NAME -> (function, arguments)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CASES = {}


def case(name, f, *args):
    assert name not in CASES, name
    CASES[name] = (f, args)


def floats(*shape, low=-2.0, high=2.0, seed=0):
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return values.astype(np.float32)


def ints(*shape, low=-50, high=50, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bools(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def complexes(*shape):
    return (floats(*shape) + 1j * floats(*shape, seed=1)).astype(np.complex64)


X, Y = floats(16, 8), floats(16, 8, seed=1)
POSITIVE, UNIT = floats(16, 8, low=0.2, high=3.0), floats(16, 8, low=-0.9, high=0.9)
N, M = ints(16, 8), ints(16, 8, low=1, seed=1)
CUBE = floats(8, 16, 8)

for name in (
    "abs atan asinh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor is_finite logistic neg"
    " reciprocal round sign sin sinh square tan tanh bessel_i0e bessel_i1e stop_gradient"
).split():
    case(name, getattr(lax, name), X)
for name in "acosh".split():
    case(name, getattr(lax, name), POSITIVE + 1)
for name in "log log1p rsqrt sqrt lgamma digamma".split():
    case(name, getattr(lax, name), POSITIVE)
for name in "acos asin atanh erf_inv".split():
    case(name, getattr(lax, name), UNIT)
for name in "add sub mul div max min rem atan2 nextafter eq ne lt le gt ge".split():
    case(name, getattr(lax, name), X, Y)
for name in "add sub mul div max min rem eq lt bitwise_and bitwise_or bitwise_xor mulhi".split():
    case(f"{name}_int", getattr(lax, name), N, M)
for name in "shift_left shift_right_arithmetic shift_right_logical".split():
    case(name, getattr(lax, name), N, ints(16, 8, low=0, high=31))
for name in "bitwise_not clz population_count abs sign neg".split():
    case(f"{name}_int", getattr(lax, name), N)
for name in "bitwise_and bitwise_or bitwise_xor".split():
    case(f"{name}_bool", getattr(lax, name), bools(16, 8), bools(16, 8, seed=1))
case("pow", lax.pow, POSITIVE, Y)
case("integer_pow", lambda x: lax.integer_pow(x, 3), X)
case("igamma", lax.igamma, POSITIVE, POSITIVE)
case("igammac", lax.igammac, POSITIVE, POSITIVE)
case("betainc", lax.betainc, POSITIVE, POSITIVE, floats(16, 8, low=0.1, high=0.9))
case("zeta", lax.zeta, POSITIVE + 1, POSITIVE)
case("polygamma", lambda x: lax.polygamma(jnp.full_like(x, 1.0), x), POSITIVE)
case("clamp", lambda x: lax.clamp(-0.5, x, 0.5), X)
case("select", lambda p, x, y: lax.select(p, x, y), bools(16, 8), X, Y)
case("select_n", lambda k, x, y: lax.select_n(k, x, y, x + y), ints(16, 8, low=0, high=3), X, Y)
case("complex", lax.complex, X, Y)
for name in "conj real imag abs exp neg sin log".split():
    case(f"{name}_complex", getattr(lax, name), complexes(16, 8))
case("mul_complex", lax.mul, complexes(16, 8), complexes(16, 8))
for dtype in ("bfloat16", "float16", "int8", "uint8", "int32", "bool"):
    case(
        f"convert_to_{dtype}",
        lambda x, t=dtype: lax.convert_element_type(x, jnp.dtype(t)),
        POSITIVE,
    )
case("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), X)
case("bitcast_narrow", lambda x: lax.bitcast_convert_type(x, jnp.int16), X)
case(
    "bitcast_wide", lambda x: lax.bitcast_convert_type(x, jnp.int32), ints(16, 8, 2, dtype=np.int16)
)
case("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), X)

case("broadcast", lambda x: lax.broadcast(x, (8,)), X)
case("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (16, 4, 8), (0, 2)), X)
case("broadcast_from_one", lambda x: lax.broadcast_in_dim(x, (16, 8), (0, 1)), floats(16, 1))
case("reshape_merge", lambda x: lax.reshape(x, (128,)), X)
case("reshape_split", lambda x: lax.reshape(x, (4, 4, 8)), X)
case("reshape_mix", lambda x: lax.reshape(x, (8, 16)), X)
case("collapse", lambda x: lax.collapse(x, 0, 2), CUBE)
case("squeeze", lambda x: lax.squeeze(x, (1,)), floats(16, 1, 8))
case("expand_dims", lambda x: lax.expand_dims(x, (1,)), X)
case("transpose", lambda x: lax.transpose(x, (2, 0, 1)), CUBE)
case("rev", lambda x: lax.rev(x, (0, 1)), X)
case("pad", lambda x: lax.pad(x, 1.5, ((2, 6, 0), (0, 0, 0))), X)
case("pad_interior", lambda x: lax.pad(x, 0.0, ((0, 1, 1), (1, 0, 1))), X)
case("pad_negative", lambda x: lax.pad(x, 0.0, ((-3, -5, 0), (0, 0, 0))), X)
case("concatenate", lambda x, y: lax.concatenate([x, y], 0), X, Y)
case("concatenate_minor", lambda x, y: lax.concatenate([x, y, x], 1), X, Y)
case("slice", lambda x: lax.slice(x, (2, 1), (14, 7)), X)
case("slice_strided", lambda x: lax.slice(x, (1, 0), (16, 8), (3, 2)), X)
case("slice_in_dim", lambda x: lax.slice_in_dim(x, 4, 12), X)
case("index_in_dim", lambda x: lax.index_in_dim(x, 5), X)
case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (4, 8)), X, np.int32(9))
case("dynamic_slice_clamped", lambda x, i: lax.dynamic_slice(x, (i, i), (4, 4)), X, np.int32(15))
case("dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i), X, np.int32(3))
case(
    "dynamic_update_slice",
    lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
    X,
    Y[:8],
    np.int32(5),
)
case(
    "dynamic_update_index",
    lambda x, i: lax.dynamic_update_index_in_dim(x, x[0], i, 0),
    X,
    np.int32(7),
)
case("split", lambda x: lax.split(x, (4, 8, 4)), X)
case("tile", lambda x: lax.tile(x, (2, 3)), X)
case("stack", lambda x, y: jnp.stack([x, y]), X, Y)
case("iota", lambda x: x + lax.iota(jnp.float32, 8), X)
case("broadcasted_iota", lambda x: x + lax.broadcasted_iota(jnp.float32, (16, 8), 0), X)
case("full", lambda x: x + lax.full((16, 8), 3.0), X)
case("full_like", lambda x: lax.full_like(x, 3.0) * x, X)
case("roll", lambda x: jnp.roll(x, 3, 0), X)
case("roll_minor", lambda x: jnp.roll(x, -1, 1), X)

# XLA's CPU runtime has no all-reduce of exclusive ors, stock or not.
case("reduce_xor", lambda x: lax.reduce_xor(x, (1,)), ints(16, 3))
for name in "max min sum prod and or".split():
    f = getattr(lax, f"reduce_{name}")
    arg = bools(16, 8) if name in ("and", "or") else UNIT + 1
    case(f"reduce_{name}_0", lambda x, f=f: f(x, (0,)), arg)
    case(f"reduce_{name}_all", lambda x, f=f: f(x, (0, 1)), arg)
case("reduce_custom", lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b, (1,)), X)
case(
    "reduce_two",
    lambda x, y: lax.reduce(
        (x, y), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)
    ),
    X,
    UNIT + 1,
)
case("argmax_0", lambda x: lax.argmax(x, 0, jnp.int32), X)
case("argmax_1", lambda x: lax.argmax(x, 1, jnp.int32), X)
case("argmin_0", lambda x: lax.argmin(x, 0, jnp.int32), X)
for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    f = getattr(lax, name)
    case(f"{name}_0", lambda x, f=f: f(x, 0), UNIT + 1)
    case(f"{name}_1_reverse", lambda x, f=f: f(x, 1, reverse=True), UNIT + 1)
case("associative_scan", lambda x: lax.associative_scan(jnp.add, x), X)
for name, init, op in (("add", 0.0, lax.add), ("max", -np.inf, lax.max), ("min", np.inf, lax.min)):
    case(
        f"reduce_window_{name}",
        lambda x, i=init, op=op: lax.reduce_window(x, np.float32(i), op, (3, 2), (1, 1), "SAME"),
        X,
    )
    case(
        f"reduce_window_{name}_strided",
        lambda x, i=init, op=op: lax.reduce_window(x, np.float32(i), op, (4, 2), (2, 2), "VALID"),
        X,
    )
case(
    "select_and_scatter",
    jax.grad(
        lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)
    ),
    X,
)

case("sort_0", lambda x: lax.sort(x, dimension=0), X)
case("sort_1", lambda x: lax.sort(x, dimension=1), X)
case("sort_pairs", lambda x, y: lax.sort((x, y), dimension=0, num_keys=1), X, Y)
case(
    "sort_two_keys",
    lambda x, y: lax.sort((x, y), dimension=1, num_keys=2),
    ints(16, 8, low=0, high=3),
    Y,
)
case("sort_key_val", lambda x, y: lax.sort_key_val(x, y, 1), X, N)
case("top_k", lambda x: lax.top_k(x, 3), X)
case("approx_max_k", lambda x: lax.approx_max_k(x, 2), X)
case("approx_min_k", lambda x: lax.approx_min_k(x, 2), X)
