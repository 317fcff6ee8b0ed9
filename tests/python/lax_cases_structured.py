"""More programs over jax.lax: contractions, windows, indices, control flow, random numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from lax_cases import CUBE, X, Y, case, complexes, floats, ints

NUMBERS = (((2,), (1,)), ((0,), (0,)))
case("dot", lax.dot, X, floats(8, 16))
case("dot_vector", lax.dot, X, floats(8))
case("batch_matmul", lax.batch_matmul, CUBE, floats(8, 8, 16))
case("dot_general_batch", lambda a, b: lax.dot_general(a, b, NUMBERS), CUBE, floats(8, 8, 16))
case("dot_general_outer", lambda a, b: lax.dot_general(a, b, (((), ()), ((), ()))), X, floats(8))
case(
    "dot_two_contracting",
    lambda a, b: lax.dot_general(a, b, (((1, 2), (0, 1)), ((), ()))),
    CUBE,
    floats(16, 8, 8),
)
case(
    "dot_bfloat16",
    lambda a, b: lax.dot(
        a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32
    ),
    X,
    floats(8, 16),
)
case(
    "dot_int8",
    lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
    ints(16, 8, dtype=np.int8),
    ints(8, 16, dtype=np.int8),
)
case("dot_complex", lax.dot, complexes(16, 8), complexes(8, 16))
case("ragged_dot", lambda a, b: lax.ragged_dot(a, b, jnp.array([5, 3, 8])), X, floats(3, 8, 16))
case("einsum", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), CUBE, floats(8, 8, 16))

IMAGE, KERNEL = floats(8, 4, 16, 8), floats(8, 4, 3, 3)
NHWC = ("NHWC", "HWIO", "NHWC")
case("conv", lambda x, k: lax.conv(x, k, (1, 1), "SAME"), IMAGE, KERNEL)
case("conv_valid", lambda x, k: lax.conv(x, k, (1, 1), "VALID"), IMAGE, KERNEL)
case("conv_strided", lambda x, k: lax.conv(x, k, (2, 2), "SAME"), IMAGE, KERNEL)
case(
    "conv_with_general_padding",
    lambda x, k: lax.conv_with_general_padding(x, k, (1, 1), ((2, 1), (0, 3)), (1, 1), (2, 1)),
    IMAGE,
    KERNEL,
)
case(
    "conv_lhs_dilated",
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((1, 1), (1, 1)), (2, 2)),
    IMAGE,
    KERNEL,
)
case(
    "conv_groups",
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=2),
    IMAGE,
    floats(8, 2, 3, 3),
)
case(
    "conv_batch_groups",
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", batch_group_count=2),
    IMAGE,
    KERNEL,
)
case(
    "conv_depthwise",
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=4),
    IMAGE,
    floats(8, 1, 3, 3),
)
case(
    "conv_nhwc",
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC),
    floats(8, 16, 8, 4),
    floats(3, 3, 4, 8),
)
case("conv_1d", lambda x, k: lax.conv(x, k, (1,), "SAME"), floats(8, 4, 16), floats(8, 4, 3))
case(
    "conv_transpose",
    lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"),
    floats(8, 16, 8, 4),
    floats(3, 3, 4, 8),
)
case("conv_patches", lambda x: lax.conv_general_dilated_patches(x, (3, 3), (1, 1), "SAME"), IMAGE)
case(
    "conv_local",
    lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (1, 1)),
    floats(8, 2, 4, 4),
    floats(4, 2, 4, 4),
)
case(
    "conv_grad", jax.grad(lambda k, x: jnp.sum(lax.conv(x, k, (1, 1), "SAME") ** 2)), KERNEL, IMAGE
)
case(
    "conv_grad_input",
    jax.grad(lambda x, k: jnp.sum(lax.conv(x, k, (2, 2), "SAME") ** 2)),
    IMAGE,
    KERNEL,
)

ROWS = ints(8, low=0, high=16)
case("gather_rows", lambda x, i: x[i], X, ROWS)
case("gather_columns", lambda x, i: x[:, i % 8], X, ROWS)
case(
    "gather_out_of_bounds",
    lambda x, i: jnp.take(x, i, axis=0, mode="fill"),
    X,
    ints(8, low=-20, high=40),
)
case("gather_clip", lambda x, i: jnp.take(x, i, axis=0, mode="clip"), X, ints(8, low=-20, high=40))
case("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), X, ints(16, 8, low=0, high=8))
case("index_take", lambda x, i: lax.index_take(x, (i,), (0,)), X, ROWS)
for name in "scatter scatter_add scatter_mul scatter_min scatter_max scatter_sub".split():
    dims = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    rows = np.random.default_rng(3).permutation(16)[:8].astype(np.int32)[:, None]
    f = getattr(lax, name)
    case(name, lambda x, i, u, f=f, d=dims: f(x, i, u, d), X, rows, Y[:8])
case("scatter_add_repeated", lambda x, i, u: x.at[i].add(u), X, ROWS, Y[:8])
case("scatter_apply", lambda x, i: x.at[i].apply(jnp.sin), X, np.arange(8, dtype=np.int32))
case("scatter_set_column", lambda x, u: x.at[:, 3].set(u), X, floats(16))
case("scatter_drop", lambda x, i, u: x.at[i].add(u, mode="drop"), X, ints(8, low=0, high=40), Y[:8])
case(
    "scatter_batched",
    lambda x, i, u: jax.vmap(lambda a, j, b: a.at[j].add(b))(x, i, u),
    X,
    ints(16, 2, low=0, high=8),
    floats(16, 2),
)
case(
    "gather_batched", lambda x, i: jax.vmap(lambda a, j: a[j])(x, i), X, ints(16, 2, low=0, high=8)
)

case("cond", lambda p, x: lax.cond(p, jnp.sin, lambda v: v * 2, x), np.bool_(True), X)
case(
    "cond_on_data",
    lambda x: lax.cond(jnp.sum(x) > 0, lambda v: v @ v.T, lambda v: v @ v.T * 2, x),
    X,
)
case("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v[::-1]], x), np.int32(2), X)
case(
    "while_loop",
    lambda x: lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 0.5 + jnp.sum(c[1]) / 999), (0, x)
    )[1],
    X,
)
case("while_on_data", lambda x: lax.while_loop(lambda v: jnp.max(v) > 0.1, lambda v: v * 0.5, x), X)
case("fori_loop", lambda x: lax.fori_loop(0, 4, lambda i, v: v.at[i].mul(2), x), X)
case(
    "fori_loop_dynamic",
    lambda n, x: lax.fori_loop(0, n, lambda i, v: jnp.roll(v, 1, 0), x),
    np.int32(3),
    X,
)
case("scan", lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x), X)
case(
    "scan_reverse",
    lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), jnp.zeros(8), x, reverse=True),
    X,
)
case(
    "scan_matmul",
    lambda w, x: lax.scan(lambda c, m: (jnp.tanh(c @ m), None), x, w)[0],
    floats(4, 8, 8),
    X,
)
case(
    "scan_grad",
    jax.grad(lambda w, x: jnp.sum(lax.scan(lambda c, m: (jnp.tanh(c @ m), None), x, w)[0])),
    floats(4, 8, 8),
    X,
)
case("map", lambda x: lax.map(lambda r: jnp.sort(r), x), X)
case("optimization_barrier", lambda x, y: lax.optimization_barrier((x * 2, y + 1)), X, Y)
case(
    "custom_root",
    lambda x: lax.custom_root(
        lambda v: v**3 - x,
        jnp.abs(x),
        lambda f, v: lax.fori_loop(0, 9, lambda _, u: u - f(u) / (3 * u * u + 0.1), v),
        lambda g, y: y / g(jnp.ones_like(y)),
    ),
    abs(X) + 1,
)
case(
    "custom_linear_solve",
    lambda a, b: lax.custom_linear_solve(lambda v: a * v, b, lambda mv, r: r / a, symmetric=True),
    abs(X) + 1,
    Y,
)
case("composite", lambda x: lax.composite(lambda v: jnp.sin(v) + 1, "my.sin")(x), X)
case("platform_dependent", lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), X)
case("reduce_and_broadcast", lambda x: jax.nn.softmax(x, axis=-1), X)

for kind in ("FFT", "IFFT"):
    case(f"fft_{kind}", lambda x, k=kind: lax.fft(x, k, (8,)), complexes(16, 8))
case("fft_RFFT", lambda x: lax.fft(x, "RFFT", (8,)), X)
case("fft_IRFFT", lambda x: lax.fft(x, "IRFFT", (14,)), complexes(16, 8))
case("fft_2d", lambda x: lax.fft(x, "FFT", (16, 8)), complexes(8, 16, 8))
SYMMETRIC = np.einsum("bij,bkj->bik", floats(8, 8, 8), floats(8, 8, 8)) + 4 * np.eye(
    8, dtype=np.float32
)
case("cholesky", lax.linalg.cholesky, SYMMETRIC)
case(
    "triangular_solve",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    np.tril(SYMMETRIC),
    floats(8, 8, 16),
)
case(
    "triangular_solve_right",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=True, transpose_a=True),
    np.tril(SYMMETRIC),
    floats(8, 16, 8),
)
case("qr", lambda a: jnp.abs(lax.linalg.qr(a, full_matrices=False)[1]), SYMMETRIC)
case("lu", lambda a: lax.linalg.lu(a)[0], SYMMETRIC)
case("eigh", lambda a: lax.linalg.eigh(a)[1], SYMMETRIC)
case("svd", lambda a: lax.linalg.svd(a, compute_uv=False), SYMMETRIC)

case("random_uniform", lambda x: x + jax.random.uniform(jax.random.key(0), (16, 8)), X)
case("random_normal", lambda x: x + jax.random.normal(jax.random.key(1), (16, 8)), X)
case("random_permutation", lambda x: jax.random.permutation(jax.random.key(2), x), X)
case(
    "random_split_vmap",
    lambda x: jax.vmap(lambda k, r: r + jax.random.uniform(k, (8,)))(
        jax.random.split(jax.random.key(3), 16), x
    ),
    X,
)
case(
    "rng_bit_generator",
    lambda k, x: lax.rng_bit_generator(k, (16, 8))[1] ^ x.astype(jnp.uint32),
    np.arange(4, dtype=np.uint32),
    ints(16, 8, low=0),
)
