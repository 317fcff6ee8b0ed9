"""Random numbers, types and the libraries of operators, as under stock JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from same_as_stock import Cases, on, put, ramp

cases = Cases()


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


# --- Random numbers


def bits(impl, partitionable=True):
    def run():
        with jax.threefry_partitionable(partitionable):
            key = jax.random.key(5, impl=impl)

            def f(key, v):
                a, b, c = jax.random.split(key, 3)
                n = jax.random.normal(a, v.shape)
                n = lax.with_sharding_constraint(n, on("x", "y"))
                return (
                    n + v,
                    jax.random.bernoulli(b, 0.3, (7, 3)),
                    jax.random.permutation(c, 16),
                    jax.random.randint(a, (4, 8), 0, 99),
                    jax.random.fold_in(a, 3),
                    jax.random.choice(b, v, (3,)),
                    jax.random.categorical(c, v),
                    jax.random.bits(c, (8,), np.uint8),
                )

            return jax.jit(f, out_shardings=on())(key, put("x", "y"))

    return run


for _impl in ("threefry2x32", "rbg", "unsafe_rbg"):
    for _partitionable in (True, False):
        _f = bits(_impl, _partitionable)
        _f.__name__ = f"random_{_impl}_{_partitionable}"
        cases(_f)


@cases
def random_distributions():
    def f(key):
        r = jax.random
        return (
            r.uniform(key, (8, 4)),
            r.exponential(key, (8,)),
            r.gumbel(key, (8,)),
            r.laplace(key, (8,)),
            r.gamma(key, 2.0, (8,)),
            r.beta(key, 1.0, 2.0, (8,)),
            r.poisson(key, 3.0, (8,)),
            r.truncated_normal(key, -1, 1, (8,)),
            r.dirichlet(key, jnp.ones(3), (4,)),
            r.multivariate_normal(key, jnp.zeros(2), jnp.eye(2), (4,)),
            r.cauchy(key, (8,)),
            r.t(key, 3.0, (8,)),
            r.orthogonal(key, 3),
            r.ball(key, 3, shape=(4,)),
        )

    return jax.jit(f, out_shardings=on())(jax.random.key(1))


@cases
def arrays_of_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), on("x"))
    f = jax.jit(
        lambda k: (
            jax.vmap(lambda q: jax.random.normal(q, (4,)))(k),
            k[::2],
            jax.vmap(jax.random.split)(k),
        ),
        out_shardings=on(),
    )
    return f(keys)


@cases
def old_style_keys():
    f = jax.jit(
        lambda k: (jax.random.normal(k, (8, 8)), jax.random.split(k)), out_shardings=on("x")
    )
    return f(jax.random.PRNGKey(7))


@cases
def dropout_under_a_scan():
    def f(key, v):
        def step(c, k):
            return jnp.where(jax.random.bernoulli(k, 0.5, c.shape), c * 2, 0.1), None

        return lax.scan(step, v, jax.random.split(key, 3))[0]

    return jax.jit(f, out_shardings=on("x", "y"))(jax.random.key(0), put("x", "y"))


# --- Types


def in_type(name):
    def run():
        dtype = jnp.dtype(name)
        x, y = put("x", "y", dtype=np.float32), put("y", None, shape=(16, 8))
        f = jax.jit(
            lambda a, b: (
                a.astype(dtype),
                (a.astype(dtype).astype(jnp.float32) * 2).sum(0),
                a.astype(dtype).T,
                jnp.concatenate([a.astype(dtype), a.astype(dtype)]),
                lax.rev(a.astype(dtype), (0,)),
                jnp.where(a > 0, a.astype(dtype), jnp.zeros((), dtype)),
                jnp.roll(b.astype(dtype), 3, 0),
            ),
            out_shardings=on(),
        )
        return [np.asarray(v.astype(jnp.float32)) for v in f(x, y)], jax.jit(
            lambda v: v, out_shardings=on("y", "x")
        )(x.astype(dtype)).sharding

    return run


for _name in (
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "int4",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "bool",
):
    _f = in_type(_name)
    _f.__name__ = f"type_{_name}"
    cases(_f)


@cases
def complex_numbers():
    x = jax.device_put((ramp(8, 16) + 1j * ramp(8, 16)).astype(np.complex64), on("x", "y"))
    f = jax.jit(
        lambda v: (
            v @ v.conj().T,
            jnp.abs(v),
            v.real.sum(0),
            jnp.exp(v * 1j),
            jnp.angle(v),
            v.sum(),
        ),
        out_shardings=on(),
    )
    return f(x)


@cases
def wide_types():
    with jax.enable_x64(True):
        x = jax.device_put(ramp(8, 16).astype(np.float64), on("x", "y"))
        i = jax.device_put(np.arange(16, dtype=np.int64) << 33, on("x"))
        f = jax.jit(
            lambda v, i: (
                v @ v.T,
                jnp.linalg.norm(v),
                i.sum(),
                i * 3 + 1,
                v.astype(np.complex128) * 1j,
            ),
            out_shardings=on(),
        )
        return f(x, i)


@cases
def four_bit_arithmetic():
    x = jax.device_put(jnp.arange(-8, 8, dtype=jnp.int4).reshape(4, 4), on("x", "y"))
    f = jax.jit(
        lambda v: ((v + v).astype(jnp.int32), v.astype(jnp.int32).sum(0), v[::2].astype(jnp.int8)),
        out_shardings=on(),
    )
    return f(x)


@cases
def weak_types():
    f = jax.jit(lambda v, k: (v * k, k + 1, k * 2.5, jnp.asarray(3)), out_shardings=on())
    return f(put("x", dtype=jnp.bfloat16), 3)


# --- Linear algebra and other libraries


@cases
def decompositions():
    a = jax.device_put(np.eye(8, dtype=np.float32) * 5 + ramp(8, 8), on("x", "y"))
    s = a @ a.T

    def f(a, s):
        q, r = jnp.linalg.qr(a)
        u, sv, vt = jnp.linalg.svd(a, full_matrices=False)
        w, v = jnp.linalg.eigh(s)
        lu, piv, perm = lax.linalg.lu(a)
        return (
            jnp.linalg.cholesky(s),
            q @ r,
            u * sv @ vt,
            sv,
            w,
            v * w @ v.T,
            lu,
            piv,
            perm,
            jnp.linalg.inv(a),
            jnp.linalg.det(a),
            jnp.linalg.solve(a, a[:, 0]),
            jax.scipy.linalg.solve_triangular(a, a, lower=True),
            jnp.linalg.slogdet(s),
            jnp.linalg.matrix_power(a / 5, 3),
            jax.scipy.linalg.expm(a / 20),
            jnp.linalg.pinv(a),
        )

    return jax.jit(f, out_shardings=on())(a, s)


@cases
def batches_of_decompositions():
    a = jax.device_put(np.eye(4, dtype=np.float32) * 5 + ramp(8, 4, 4), on("x"))

    def f(a):
        s = a @ a.mT
        return (
            jnp.linalg.cholesky(s),
            jnp.linalg.eigvalsh(s),
            jnp.linalg.inv(a),
            jnp.linalg.svd(a, compute_uv=False),
            jnp.abs(jnp.linalg.qr(a)[1]),
            lax.linalg.triangular_solve(a, s, left_side=True, lower=True),
            jnp.linalg.solve(a, s),
            lax.linalg.lu(a)[2],
        )

    return jax.jit(f, out_shardings=on("x"))(a)


@cases
def gradients_of_decompositions():
    s = jax.device_put(np.eye(8, dtype=np.float32) * 9 + ramp(8, 8) @ ramp(8, 8).T, on("x"))

    def f(v):
        return (
            jnp.sum(jnp.linalg.cholesky(v))
            + jnp.linalg.slogdet(v)[1]
            + jnp.sum(jnp.linalg.eigvalsh(v) ** 2)
        )

    return jax.jit(jax.grad(f), out_shardings=on())(s)


@cases
def fourier():
    x = put("x", None, shape=(8, 16))
    f = jax.jit(
        lambda v: (
            jnp.fft.fft(v),
            jnp.fft.rfft(v),
            jnp.fft.irfft(jnp.fft.rfft(v)),
            jnp.fft.fft2(v),
            jnp.fft.fft(v, axis=0),
            jnp.fft.fftshift(v),
        ),
        out_shardings=on(),
    )
    return f(x), f(put(None, "y")), f(put("x", "y"))


@cases
def sorting():
    x = put("x", "y")
    f = jax.jit(
        lambda v: (
            jnp.sort(v, 0),
            jnp.sort(v, 1),
            jnp.argsort(v, 0, stable=True),
            lax.top_k(v, 5),
            lax.top_k(v.T, 2),
            jnp.argmax(v, 0),
            jnp.argmin(v),
            jnp.median(v),
            lax.sort((v, v * 2, v.astype(jnp.int32)), num_keys=2),
            jnp.unique(v, size=5),
            jnp.quantile(v, 0.3, axis=1),
            jnp.searchsorted(jnp.sort(v[0]), v[1]),
            lax.approx_max_k(v, 3)[0],
        ),
        out_shardings=on(),
    )
    return f(x)


@cases
def cumulative_and_segments():
    # Along dimensions that are whole: stock XLA is wrong where a cumulative one is split.
    x, ids = put(), jax.device_put(np.array([0, 2, 1, 0, 3, 3, 1, 2]), on("x"))
    f = jax.jit(
        lambda v, i: (
            jnp.cumsum(v, 0),
            jnp.cumprod(v / 2, 1),
            lax.cummax(v + 9, 0),
            lax.cumlogsumexp(v, 1),
            jnp.cumsum(v, 1)[:, ::-1],
            jax.ops.segment_sum(v, i, 4),
            jax.ops.segment_max(v, i, 4),
            jnp.bincount(i, length=4),
            jnp.histogram(v, 4)[0],
            jax.nn.one_hot(i, 4).T @ v,
            jnp.digitize(v, jnp.array([-1.0, 0, 1])),
            jnp.diff(v, axis=0),
            jnp.convolve(v[0], v[1], "same"),
        ),
        out_shardings=on(),
    )
    return f(x, ids)


@cases
def images_and_convolutions():
    x = put("x", "y", None, None, shape=(4, 8, 8, 4))
    w = put(None, None, None, "y", shape=(3, 3, 4, 8))

    def f(x, w):
        dn = ("NHWC", "HWIO", "NHWC")
        a = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dn)
        b = lax.conv_general_dilated(
            x, w, (2, 2), "VALID", rhs_dilation=(2, 1), dimension_numbers=dn
        )
        c = lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=dn)
        d = lax.conv_general_dilated(
            x, w[:, :, :1], (1, 1), "SAME", dimension_numbers=dn, feature_group_count=4
        )
        return (
            a,
            b,
            c,
            d,
            jax.image.resize(x, (4, 16, 4, 4), "bilinear"),
            jax.image.resize(x, (4, 5, 8, 4), "cubic"),
            lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
            jax.scipy.ndimage.map_coordinates(x[0, :, :, 0], [jnp.linspace(0, 7, 5)] * 2, order=1),
            jnp.flip(x, 1),
            jnp.rot90(x[0]),
        )

    return jax.jit(f, out_shardings=on())(x, w), jax.jit(
        jax.grad(lambda x, w: jnp.sum(f(x, w)[0] ** 2), (0, 1)), out_shardings=on()
    )(x, w)


@cases
def einsums():
    a, b, c = (
        put("x", "y", shape=(8, 16)),
        put("y", None, "x", shape=(16, 4, 8)),
        put(None, "x", shape=(4, 8)),
    )
    f = jax.jit(
        lambda a, b, c: [
            jnp.einsum(s, *o)
            for s, o in (
                ("ij,jkl->ikl", (a, b)),
                ("ij,jki->k", (a, b)),
                ("ij,jkl,kl->i", (a, b, c)),
                ("ij->ji", (a,)),
                ("jkl,kl->jkl", (b, c)),
                ("jkl,jkl->", (b, b)),
                ("kl,km->lm", (c, c)),
            )
        ],
        out_shardings=on(),
    )
    return f(a, b, c)


@cases
def indexing():
    x, i, m = put("x", "y"), jax.device_put(np.array([7, 0, 3, 3]), on("y")), ramp(8, 16) > 0

    def f(v, i):
        return (
            v[i],
            v[:, i],
            v[i, i],
            v.at[i].add(1.0),
            v.at[i, 2].set(5.0),
            v.at[:, i].max(0.5),
            v.at[2:5].multiply(3),
            jnp.take_along_axis(v, i[:, None].repeat(16, 1) % 8, 0),
            v[1:7:2, ::-1],
            v[..., None, 3],
            jnp.where(m, v, -v),
            lax.dynamic_slice(v, (i[0], i[1]), (3, 5)),
            lax.dynamic_update_slice(v, v[:2, :3], (i[2], 1)),
            jnp.put_along_axis(v, i[None], 9.0, 1, inplace=False),
            v.at[jnp.array([9, -1])].get(mode="fill", fill_value=0),
            v.at[jnp.array([9])].set(1.0, mode="drop"),
            jnp.nonzero(v > 1, size=6)[0],
            jnp.argwhere(v > 2, size=3),
            jnp.take(v, i, axis=1, mode="clip"),
            jnp.select([v > 0, v < -1], [v, -v], 0),
        )

    return jax.jit(f, out_shardings=on())(x, i)


@cases
def shapes():
    x = put("x", "y")
    f = jax.jit(
        lambda v: (
            v.reshape(4, 2, 16),
            v.reshape(-1),
            v.reshape(16, 8),
            jnp.stack([v, v], 1),
            jnp.tile(v, (2, 3)),
            jnp.repeat(v, 3, 0),
            jnp.pad(v, 2, mode="reflect"),
            jnp.pad(v, ((1, 0), (0, 3))),
            jnp.kron(v[:2, :2], v[:2, :2]),
            jnp.broadcast_to(v, (2, 8, 16)),
            jnp.moveaxis(v[None], 0, 2),
            jnp.split(v, 4, 1),
            jnp.triu(v),
            jnp.diag(v),
            jnp.trace(v),
            jnp.roll(v, (2, 5), (0, 1)),
            jnp.meshgrid(v[0], v[:, 0]),
            jnp.vstack([v, v[:1]]),
            jnp.squeeze(v[:1]),
        ),
        out_shardings=on(),
    )
    return f(x)


@cases
def statistics_and_functions():
    x = put("x", "y")
    f = jax.jit(
        lambda v: (
            v.std(0),
            v.var(),
            jnp.cov(v),
            jnp.corrcoef(v),
            jax.nn.softmax(v, 0),
            jax.nn.logsumexp(v),
            jax.nn.gelu(v),
            jax.scipy.special.erfinv(v / 3),
            jax.scipy.special.gammaln(jnp.abs(v) + 1),
            jax.scipy.special.digamma(jnp.abs(v) + 1),
            jax.scipy.special.betainc(1.0, 2.0, jax.nn.sigmoid(v)),
            jax.scipy.special.i1e(v),
            jnp.nanmean(v),
            jnp.ptp(v, 0),
            jnp.polyval(jnp.ones(4), v),
            jnp.interp(v, jnp.arange(3.0), jnp.arange(3.0)),
            jax.scipy.stats.norm.logpdf(v),
            jnp.float_power(jnp.abs(v), 1.5),
            jnp.logaddexp(v, v),
            jnp.clip(v, -1, 1),
            jnp.nextafter(v, 1.0),
            jnp.remainder(v, 0.7),
            jnp.right_shift(v.astype(jnp.int32) + 9, 1),
            lax.population_count(jnp.abs(v).astype(jnp.uint32)),
            jnp.all(v > -9),
            jnp.any(v > 1, 0),
            jnp.count_nonzero(v, 1),
            jnp.prod(v / 2, 0),
        ),
        out_shardings=on(),
    )
    return f(x)


@cases
def low_level_operators():
    x, y = put("x", "y"), put("y", "x", shape=(16, 8))

    def f(v, w):
        return (
            lax.reduce(v, 0.0, lax.add, (0,)),
            lax.reduce(
                (v, v.astype(jnp.int32)),
                (0.0, 0),
                lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])),
                (1,),
            ),
            lax.reduce_precision(v, 5, 7),
            lax.dot_general(v, w, (((1,), (0,)), ((), ()))),
            lax.rsqrt(jnp.abs(v) + 1),
            lax.bitcast_convert_type(v, jnp.int32),
            lax.bitcast_convert_type(v, jnp.uint8),
            lax.clz(v.astype(jnp.int32)),
            lax.round(v),
            lax.collapse(v, 0),
            lax.optimization_barrier((v, w)),
            lax.stop_gradient(v),
            lax.reduce_window(v, 0.0, lax.add, (2, 3), (1, 2), "VALID"),
            lax.reduce_or(v > 0, (0,)),
            lax.argmax(v, 1, jnp.int32),
            lax.dot(v, w, precision=lax.Precision.HIGHEST),
            lax.batch_matmul(v[None], w[None]),
            lax.ragged_dot(v, jnp.stack([w, w]), jnp.array([3, 5], jnp.int32)),
        )

    return jax.jit(f, out_shardings=on())(x, y)
