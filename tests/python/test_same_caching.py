"""How often programs are traced, lowered and compiled, and what is kept, as under stock JAX."""

import functools
import gc
import weakref

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from same_as_stock import AUTO, EXPLICIT, Cases, on, permuted, put, ramp

cases = Cases()
EVENTS = ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")


@pytest.mark.parametrize("name", cases)
def test_case(name):
    cases[name]()


class Count:
    """How often JAX did each of EVENTS within the context."""

    def __enter__(self):
        self.found = dict.fromkeys(EVENTS, 0)
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self.found

    def hear(self, event, _seconds, **_):
        for name in EVENTS:
            self.found[name] += event.endswith(name + "_duration")

    def __exit__(self, *_):
        from jax._src import monitoring

        monitoring.unregister_event_duration_listener(self.hear)


def counted(*calls):
    """The events of each call."""
    out = []
    for call in calls:
        with Count() as found:
            jax.block_until_ready(call())
        out.append(found)
    return out


@cases
def same_function_again():
    f, x = jax.jit(lambda a: a * 2), put("x")
    return counted(
        lambda: f(x), lambda: f(x), lambda: f(put("x")), lambda: f(put("y")), lambda: f(x)
    )


@cases
def lowered_then_called():
    f, x = jax.jit(lambda a: a * 2), put("x")
    return counted(lambda: f.lower(x).compile()(x), lambda: f(x), lambda: f.lower(x).compile()(x))


@cases
def results_fed_back():
    f, x = jax.jit(lambda a: a * 2), put("x", "y")
    y = f(x)
    return counted(lambda: f(y), lambda: f(f(y)))


@cases
def other_out_shardings():
    def g(a):
        return a + 1

    x = put("x")
    return counted(
        *(lambda s=s: jax.jit(g, out_shardings=s)(x) for s in (on("x"), on("y"), on("x"), None))
    )


@cases
def cache_sizes():
    f = jax.jit(lambda a: a * 3)
    f(put("x"))
    f(put("x"))
    one = f._cache_size()
    f(put("y"))
    two = f._cache_size()
    f.clear_cache()
    return one, two, f._cache_size()


@cases
def static_arguments():
    f = jax.jit(lambda a, n: a * n, static_argnums=1)
    x = put("x")
    return counted(lambda: f(x, 2), lambda: f(x, 3), lambda: f(x, 2))


@cases
def under_meshes():
    f = jax.jit(lambda a: lax.with_sharding_constraint(a * 2, P("x")))
    out = []
    for m in (AUTO, permuted(), AUTO):
        with jax.set_mesh(m):
            out += counted(lambda: f(ramp(8, 16)))
    return out


@cases
def eager_operators():
    x, y = put("x"), put("x")
    return counted(lambda: x + y, lambda: x + y, lambda: jnp.sin(x), lambda: jnp.sin(y))


@cases
def gradients():
    f = jax.jit(jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w))))
    w, x = put(None, "y", shape=(16, 8)), put("x")
    return counted(lambda: f(w, x), lambda: f(w, x))


@cases
def shard_mapped():
    @functools.partial(jax.shard_map, mesh=AUTO, in_specs=P("x"), out_specs=P("x"))
    def g(v):
        return v * 2

    f, x = jax.jit(g), put("x")
    return counted(lambda: f(x), lambda: f(x))


@cases
def constants_are_let_go():
    def call():
        big = put("x")
        jax.jit(lambda a: big * a)(put("y"))
        return weakref.ref(big)

    alive = call()
    jax.clear_caches()
    gc.collect()
    return alive() is None


@cases
def arguments_are_let_go():
    x = put("x")
    alive = weakref.ref(x)
    y = jax.jit(lambda a: a * 2)(x)
    del x
    gc.collect()
    return alive() is None, y


@cases
def closures_are_let_go():
    class Thing:
        pass

    thing = Thing()
    alive = weakref.ref(thing)

    def g(a, thing=thing):
        return a * 2

    f = jax.jit(g)
    f(put("x"))
    del thing, g, f
    jax.clear_caches()
    gc.collect()
    return alive() is None


@cases
def buffers_of_donated_arguments():
    x = put("x", "y")
    before = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
    y = jax.jit(lambda a: a + 1, donate_argnums=0, out_shardings=on("x", "y"))(x)
    after = [s.data.unsafe_buffer_pointer() for s in y.addressable_shards]
    return before == after, y


@cases
def donated_state_of_a_loop():
    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, x):
        return jax.tree.map(lambda s: s + x.sum(), state), x * 2

    state = {"a": put("x"), "b": put("y", "x")}
    for _ in range(3):
        state, x = step(state, put("x", "y"))
    return state, x


@cases
def compiled_text_and_modules():
    c = jax.jit(lambda a: a * 2).lower(put("x")).compile()
    module = c.runtime_executable().hlo_modules()[0]
    return module.name, "num_partitions=8" in c.as_text(), "HloModule jit__lambda" in c.as_text()


@cases(ours=False)
def lowered_texts():
    low = jax.jit(lambda a: a * 2, in_shardings=on("x"), out_shardings=on("y")).lower(ramp(8, 16))
    return low.as_text(), low.as_text("hlo"), str(low.compiler_ir("stablehlo")), low.cost_analysis()


@cases
def memory_figures():
    f = jax.jit(
        lambda a, b: (a + b, a * 2),
        donate_argnums=0,
        in_shardings=on("x", "y"),
        out_shardings=on("x", "y"),
    )
    m = f.lower(ramp(8, 16), ramp(8, 16)).compile().memory_analysis()
    return (
        m.argument_size_in_bytes,
        m.output_size_in_bytes,
        m.alias_size_in_bytes,
        m.host_temp_size_in_bytes,
    )


@cases
def arguments_of_many_kinds():
    f = jax.jit(lambda a, *v, **k: jax.tree.map(lambda x: x * a, (v, k)))
    low = f.lower(2.0, put("x"), [put("y"), None], w=(1, np.int8(2)), z={"q": put()})
    c = low.compile()
    return (
        c(2.0, put("x"), [put("y"), None], w=(1, np.int8(2)), z={"q": put()}),
        str(low.in_tree),
        str(low.args_info),
        str(c.in_avals),
    )


@cases
def donated_in_info():
    f = jax.jit(lambda a, b: a + b, donate_argnames="b")
    return f.lower(put("x"), b=put("x")).args_info, f.lower(
        put("x"), b=put("x")
    ).compile().args_info


@cases
def out_of_order_and_unused_outputs():
    f = jax.jit(
        lambda a, b, c: (c, a, 3, b + 1, a), out_shardings=(on("x"), None, None, on("y"), on())
    )
    return f(put("x"), put("y"), put("x", "y"))


@cases
def evaluated_shapes():
    f = jax.jit(lambda a: {"s": a.sum(0), "t": a.T}, out_shardings=on())
    return str(jax.eval_shape(f, put("x"))), str(f.eval_shape(put("x"))), f(put("x"))


@cases
def debug_infos_and_names():
    def my_function(alpha, *, beta):
        return {"gamma": alpha + beta}

    low = jax.jit(my_function).lower(put("x"), beta=put("x"))
    c = low.compile()
    return (
        "my_function" in c.as_text(),
        'loc("alpha")' in low.as_text(debug_info=True),
        c.runtime_executable().hlo_modules()[0].name,
    )


@cases
def explicit_results_are_cached():
    with jax.set_mesh(EXPLICIT):
        f = jax.jit(lambda a: jnp.sin(a).sum(0))
        x = jax.device_put(ramp(8, 16), on("x", "y", mesh=EXPLICIT))
        return counted(lambda: f(x), lambda: f(x)), f(x), str(jax.typeof(f(x)))


@cases
def compiled_under_disable_jit():
    with jax.disable_jit():
        return jax.jit(lambda a: a.sum(0) * 2)(put("x"))


@cases
def wrong_calls_of_jit():
    out = []
    x = put("x")
    for call in (
        lambda: jax.jit(lambda a: a, in_shardings=(on(), on()))(x),
        lambda: jax.jit(lambda a: a, out_shardings=(on(), on()))(x),
        lambda: jax.jit(lambda a: a, in_shardings=3)(x),
        lambda: jax.jit(lambda a: a, out_shardings=on("x", "y", "x"))(x),
        lambda: jax.jit(lambda a: a, in_shardings=on("x"))(a=x),
        lambda: jax.jit(lambda a: a, in_shardings=P("x"))(x),
        lambda: jax.jit(lambda a, b: a + b)(x, jax.device_put(1.0, jax.devices()[2])),
        lambda: jax.jit(lambda a: a[0], out_shardings=on("x", "y"))(x),
        lambda: jax.jit(lambda a: a.sum(), out_shardings=on("x"))(x),
        lambda: jax.jit(lambda a: a, donate_argnums=3)(x),
        lambda: jax.device_put(x, on("x", "y", "x")),
        lambda: jax.jit(lambda a: lax.with_sharding_constraint(a, on("z")))(x),
        lambda: jax.jit(lambda a: lax.psum(a, "x"))(x),
        lambda: jax.jit(lambda a: float(a.sum()))(x),
    ):
        try:
            call()
            out.append("fine")
        except Exception as error:  # each of its own type
            out.append(f"{type(error).__name__}: {error}"[:400])
    return out, jax.jit(lambda a: a + 1)(x)
