"""Effects, callbacks, inspection and custom partitioning, as under stock JAX."""

import contextlib
import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from same_as_stock import Cases, on, put, ramp

cases = Cases()


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


# --- Callbacks and effects


@cases(shardings=False)
def pure_callbacks():
    def f(v):
        s = v.sum(1)
        a = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(s.shape, s.dtype), s)
        b, c = jax.pure_callback(lambda p, q: (p + q, p * q), (a, a), a, s)
        return a, b @ c

    return jax.jit(f)(put("x", "y"))


@cases(shardings=False)
def pure_callback_under_vmap_and_grad():
    @jax.custom_jvp
    def f(v):
        return jax.pure_callback(
            np.sin, jax.ShapeDtypeStruct(v.shape, v.dtype), v, vmap_method="expand_dims"
        )

    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * t[0]))
    return jax.jit(jax.vmap(f))(put("x", "y")), jax.jit(jax.grad(lambda v: f(v).sum()))(put("x"))


@cases
def io_callbacks_run_once():
    calls = []

    def f(v):
        io_callback(lambda s: calls.append(float(s)), None, v.sum())
        r = io_callback(
            lambda s: np.float32(len(calls)) * 0 + s, jax.ShapeDtypeStruct((), np.float32), v[0, 0]
        )
        return v * 2 + r

    out = jax.jit(f, out_shardings=on("x"))(put("x", "y"))
    jax.effects_barrier()
    return out, calls


@cases(shardings=False)
def ordered_callbacks():
    calls = []

    def note(k, s):
        calls.append((int(k), float(s)))
        return np.float32(k)

    def f(v):
        io_callback(note, jax.ShapeDtypeStruct((), np.float32), 0, v.sum(), ordered=True)
        r = io_callback(note, jax.ShapeDtypeStruct((), np.float32), 1, v.max(), ordered=True)
        jax.debug.print("third {r}", r=r, ordered=True)
        io_callback(note, jax.ShapeDtypeStruct((), np.float32), 2, r, ordered=True)
        return v * r

    g, out = jax.jit(f), io.StringIO()
    with contextlib.redirect_stdout(out):
        a = g(g(put("x", "y")))
        jax.effects_barrier()
    return a, calls, out.getvalue()


@cases(shardings=False)
def ordered_callbacks_in_a_loop():
    calls = []

    def f(v):
        def step(k, c):
            io_callback(
                lambda i, s: calls.append((int(i), float(s))), None, k, c.sum(), ordered=True
            )
            return c + 1

        return lax.fori_loop(0, 4, step, v)

    a = jax.jit(f)(put("x", "y"))
    jax.effects_barrier()
    return a, calls


@cases
def callbacks_in_loops_and_branches():
    calls = []

    def note(s):
        calls.append(round(float(s), 3))

    def f(v):
        def step(c, r):
            io_callback(note, None, c)
            return c + r.sum(), None

        c, _ = lax.scan(step, 0.0, v)
        lax.cond(c > 0, lambda: io_callback(note, None, c), lambda: None)
        return c

    out = jax.jit(f, out_shardings=on())(put("x", "y"))
    jax.effects_barrier()
    return out, sorted(calls)


@cases(shardings=False)
def debug_print():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.jit(lambda v: (jax.debug.print("sum {s} of {k}", s=v.sum(), k=3), v * 2)[1])(
            put("x", "y")
        )
        jax.effects_barrier()
    return out.getvalue()


@cases(shardings=False)
def debug_callback():
    seen = []
    jax.jit(
        lambda v: (jax.debug.callback(lambda a: seen.append(np.asarray(a).copy()), v), v + 1)[1]
    )(put("x", "y"))
    jax.effects_barrier()
    return seen


@cases
def inspected_shardings():
    seen = []

    def f(v):
        jax.debug.inspect_array_sharding(v, callback=lambda s: seen.append(str(s)))
        w = lax.with_sharding_constraint(v * 2, on("y", "x"))
        jax.debug.inspect_array_sharding(w, callback=lambda s: seen.append(str(s)))
        return w

    out = jax.jit(f, out_shardings=on("y", "x"))(put("x", "y"))
    return out, seen


@cases(ours=False)
def visualised_shardings():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.debug.visualize_array_sharding(put("x", "y"), use_color=False)
    return out.getvalue()


@cases
def mutable_references():
    ref = jax.new_ref(put("x", "y"))

    @jax.jit
    def f(v):
        ref[...] = ref[...] + v
        ref[0, 0] = 7.0

    f(put("x", "y"))
    return np.asarray(ref[...])


@cases
def references_inside():
    @functools.partial(jax.jit, out_shardings=on("x"))
    def f(v):
        r = jax.new_ref(jnp.zeros_like(v))
        for k in range(3):
            r[...] += v * k
        return r[...]

    return f(put("x"))


@cases
def checkify_errors():
    from jax.experimental import checkify

    f = checkify.checkify(lambda v: (checkify.check(jnp.all(v > 0), "negative"), jnp.log(v))[1])
    err, out = jax.jit(f, out_shardings=None)(put("x"))
    return err.get(), np.nan_to_num(np.asarray(out))


@cases
def nan_checks():
    with jax.debug_nans(True):
        return jax.jit(lambda v: jnp.log(v - 10), out_shardings=on("x"))(put("x"))


@cases
def named_scopes_and_profiling():
    with jax.profiler.TraceAnnotation("a"):
        f = jax.jit(
            jax.named_call(lambda v: jax.named_scope("b")(jnp.sin)(v), name="c"),
            out_shardings=on("x"),
        )
        return f(put("x")), "jit" in f.lower(put("x")).compile().as_text()


# --- Custom partitioning


def row_sums():
    """Rows may be split, columns too: then JAX's callback adds up the parts."""

    @custom_partitioning
    def f(v, scale):
        return jnp.sum(jnp.sin(v), 1) * scale, v * scale

    def partition(mesh, arguments, results):
        spec = tuple(arguments[0].sharding.spec) + (None,) * 2
        rows, columns = spec[:2]

        def local(v, scale):
            sums = jnp.sum(jnp.sin(v), 1)
            return (lax.psum(sums, columns) if columns else sums) * scale, v * scale

        whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(rows, columns))
        return mesh, local, (NamedSharding(mesh, P(rows)), split), (split, whole)

    f.def_partition(partition=partition, sharding_rule="i j, -> i, i j")
    return f


@cases(shardings=False)
def custom_partitioning_of_several_results():
    f = row_sums()
    return jax.jit(f)(put("x", "y"), 2.0), jax.jit(f)(put("y"), 2.0), jax.jit(f)(put(), 2.0)


@cases(shardings=False)
def custom_partitioning_in_loops_and_functions():
    f = row_sums()
    g = jax.jit(lambda v: f(v, 0.5)[1])
    h = jax.jit(lambda v: lax.scan(lambda c, r: (f(c, 1.5)[1], f(c * r.sum(), 1.0)[0]), v, v))
    return jax.jit(lambda v: g(g(v) + g(v.T).T))(put("x", "y", shape=(16, 16))), h(put("x"))


@cases(shardings=False)
def custom_partitioning_that_reshards_its_operands():
    @custom_partitioning
    def f(v):
        return jnp.cumsum(v, 0)

    def partition(mesh, arguments, results):
        split = NamedSharding(mesh, P(None, "y"))
        return mesh, lambda v: jnp.cumsum(v, 0), split, (split,)

    f.def_partition(partition=partition, sharding_rule="i j -> i j", need_replication_factors="i")
    return jax.jit(f)(put("x", "y")), jax.jit(f)(put("y"))


@cases(shardings=False)
def custom_partitioning_with_static_arguments():
    @functools.partial(custom_partitioning, static_argnums=1)
    def f(v, power):
        return v**power

    def partition(power, mesh, arguments, results):
        s = arguments[0].sharding
        return mesh, lambda v: v**power, s, (s,)

    f.def_partition(partition=partition, sharding_rule="... -> ...")
    return jax.jit(lambda v: f(v, 3))(put("x", "y"))


@cases(ours=False)
def custom_partitioning_whose_callback_fails():
    @custom_partitioning
    def f(v):
        return jnp.sin(v)

    def partition(mesh, arguments, results):
        return mesh, lambda v: v[:1], arguments[0].sharding, (arguments[0].sharding,)

    f.def_partition(partition=partition, sharding_rule="i j -> i j")
    try:
        jax.jit(f)(put("x", "y"))
    except Exception as error:  # its type is XLA's or JAX's own
        return "Mismatch in result shapes" in str(error)


@cases
def calls_of_lapack_with_rules():
    m = jax.device_put(np.eye(8, dtype=np.float32) * 3 + ramp(8, 8), on("x"))
    f = jax.jit(lambda v: jnp.sort(jnp.linalg.eigvals(v).real), out_shardings=on())
    return f(m), f(jax.device_put(m, on("x", "y")))
