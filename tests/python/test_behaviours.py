"""What JAX programs rely on besides their results, under `gspmd.use()` as under stock JAX."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import gspmd

AUTO = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def on(*spec, mesh=AUTO, **kwargs):
    return NamedSharding(mesh, P(*spec), **kwargs)


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 64


def put(*spec, shape=(8, 16), mesh=AUTO):
    return jax.device_put(ramp(*shape), on(*spec, mesh=mesh))


def through(f, *args, **kwargs):
    before = gspmd.last_report()
    with gspmd.use():
        out = jax.block_until_ready(f(*args, **kwargs))
    assert gspmd.last_report() is not before, "the program did not come through gspmd"
    return out


def same_as_stock(f, *args, **kwargs):
    got, want = through(f, *args, **kwargs), f(*args, **kwargs)

    def compare(a, b):
        assert a.dtype == b.dtype and a.aval.weak_type == b.aval.weak_type
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)

    jax.tree.map(compare, got, want)
    return got, want


def test_given_output_shardings():
    f = jax.jit(lambda x: (x.T, x.sum()), out_shardings=(on("y", "x"), on()))
    got, want = same_as_stock(f, put("x", "y"))
    assert [g.sharding for g in got] == [w.sharding for w in want]


def test_unspecified_inputs_and_outputs():
    f = jax.jit(lambda x, y: x @ y.T)
    same_as_stock(f, put("x", None), put(None, "y"))
    same_as_stock(f, put("x", None), ramp(8, 16))


def test_with_sharding_constraint():
    def f(x):
        y = lax.with_sharding_constraint(x * 2, on("y", "x"))
        return lax.with_sharding_constraint(jnp.sin(y), on(P.UNCONSTRAINED, "x"))

    same_as_stock(jax.jit(f), put("x", "y"))


def test_explicit_mode():
    with jax.set_mesh(EXPLICIT):
        x = jax.device_put(ramp(8, 16), P("x", "y"))

        @jax.jit
        def f(x):
            assert jax.typeof(x).sharding.spec == P("x", "y")
            y = jax.sharding.reshard(x, P(None, "y"))
            return jnp.einsum("ab,cb->ac", x, x, out_sharding=P("x")), y.sum(0)

        got, want = same_as_stock(f, x)
        assert [g.sharding for g in got] == [w.sharding for w in want]


@pytest.mark.parametrize("order", [[7, 6, 5, 4, 3, 2, 1, 0], [0, 4, 1, 5, 2, 6, 3, 7]])
def test_permuted_devices(order):
    mesh = Mesh(np.array(jax.devices())[order].reshape(2, 4), ("x", "y"))
    x = jax.device_put(ramp(8, 16), on("x", "y", mesh=mesh))
    f = jax.jit(lambda x: jnp.roll(x, 3, 0) @ x.T, out_shardings=on("y", mesh=mesh))
    got, want = same_as_stock(f, x)
    assert got.sharding == want.sharding


def test_some_of_the_devices():
    mesh = Mesh(np.array(jax.devices())[2:6], ("d",))
    x = jax.device_put(ramp(8, 16), on("d", mesh=mesh))
    got, _ = same_as_stock(jax.jit(lambda x: x @ x.T), x)
    assert got.sharding.device_set == set(jax.devices()[2:6])


def test_device_put_between_meshes():
    other = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    x = put("x", "y")
    with gspmd.use():
        y = jax.device_put(x, on("b", "a", mesh=other))
        z = jax.device_put(y, SingleDeviceSharding(jax.devices()[3]))
    np.testing.assert_array_equal(y, ramp(8, 16))
    np.testing.assert_array_equal(z, ramp(8, 16))


def test_device_put_between_device_orders():
    order = np.array(jax.devices())[[0, 3, 5, 2, 7, 1, 6, 4]]
    sharding = on("y", "x", mesh=Mesh(order.reshape(2, 4), ("x", "y")))
    got = through(jax.device_put, put("x", "y"), sharding)
    assert got.sharding == sharding
    np.testing.assert_array_equal(got, ramp(8, 16))


@pytest.mark.parametrize("axes", [{"x", "y"}, {"x"}, {"y"}])
def test_shard_map(axes):
    specs = P("x" if "x" in axes else None, "y" if "y" in axes else None)

    def body(v):
        for a in sorted(axes):
            v = v + lax.psum(v, a) + lax.axis_index(a)
        name = sorted(axes)[0]
        size = AUTO.shape[name]
        v = lax.ppermute(v, name, [(i, (i + 1) % size) for i in range(size)])
        return v * lax.all_gather(v, name).sum()

    f = jax.jit(jax.shard_map(body, mesh=AUTO, in_specs=specs, out_specs=specs, axis_names=axes))
    same_as_stock(f, put("x", "y"))


def test_shard_map_collectives():
    def body(v):
        a = lax.psum_scatter(v, "y", scatter_dimension=1, tiled=True)
        b = lax.all_to_all(v, "x", 1, 0, tiled=True)
        return a, b, lax.pmax(v, ("x", "y"))

    f = jax.shard_map(
        body, mesh=AUTO, in_specs=P("x"), out_specs=(P("x", "y"), P("x"), P()), check_vma=False
    )
    same_as_stock(jax.jit(f), put("x"))


def test_nested_jit():
    inner = jax.jit(lambda x: jnp.sin(x) @ x.T)
    same_as_stock(jax.jit(lambda x: inner(x) + inner(x * 2)), put("x", "y"))


def test_transformations():
    def f(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w, x = put(None, "y", shape=(16, 8)), put("x")
    same_as_stock(jax.jit(jax.grad(f)), w, x)
    same_as_stock(jax.jit(jax.value_and_grad(jax.checkpoint(f), argnums=(0, 1))), w, x)
    same_as_stock(jax.jit(jax.vmap(lambda r: r @ r)), put("x", None))
    same_as_stock(jax.jit(jax.hessian(lambda v: jnp.sum(v**3))), jax.device_put(ramp(8), on("x")))
    same_as_stock(jax.jit(lambda v: jax.jvp(jnp.sin, (v,), (v,))), x)


def test_custom_vjp():
    @jax.custom_vjp
    def f(x):
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, g: (g * 3 * x,))
    same_as_stock(jax.jit(jax.grad(lambda x: f(x).sum())), put("x", "y"))


def test_control_flow():
    def f(x):
        def step(c, row):
            c = lax.cond(row.sum() > 3, lambda v: v + row, lambda v: v * 0.5, c)
            return c, c.max()

        last, tops = lax.scan(step, x[0], x)
        return last, tops, lax.while_loop(lambda v: v.sum() < 1e4, lambda v: v * 2 + 1, last)

    same_as_stock(jax.jit(f), put("x", "y"))
    same_as_stock(jax.jit(f), put(None, "y"))


def test_random():
    def f(key, x):
        a, b = jax.random.split(key)
        noise = jax.random.normal(a, x.shape) + jax.random.bernoulli(b, 0.3, x.shape)
        return lax.with_sharding_constraint(noise, on("x", "y")) + x, jax.random.fold_in(a, 3)

    same_as_stock(jax.jit(f), jax.random.key(5), put("x", "y"))


def test_donation_with_aliasing():
    f = jax.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))
    a, b = put("x"), put("y", shape=(16, 8))
    compiled = through(lambda: f.lower(a, b).compile())
    assert "input_output_alias" in compiled.as_text().splitlines()[0]
    x, y = compiled(a, b)
    assert a.is_deleted() and b.is_deleted()
    np.testing.assert_array_equal(x, ramp(8, 16) + 1)
    np.testing.assert_array_equal(y, ramp(16, 8) * 2)


def test_compiled_objects():
    f = jax.jit(lambda p, x: {"y": x @ p["w"]}, in_shardings=({"w": on("y")}, on("x", "y")))
    args = {"w": ramp(16, 8)}, ramp(8, 16)
    lowered = f.lower(*args)
    stock, ours = lowered.compile(), through(lambda: f.lower(*args).compile())
    assert ours.input_shardings == stock.input_shardings
    assert ours.in_tree == stock.in_tree and ours.out_tree == stock.out_tree
    assert ours.cost_analysis()["flops"] > 0
    assert ours.memory_analysis().argument_size_in_bytes > 0
    np.testing.assert_allclose(ours(*args)["y"], stock(*args)["y"], rtol=1e-5)
    with pytest.raises(TypeError):
        ours(*args, 1)


def test_automatic_layouts():
    from jax.experimental.layout import Format, Layout

    f = jax.jit(lambda x: x.T * 2, in_shardings=Format(Layout.AUTO, on("x", "y")))
    x = jax.ShapeDtypeStruct((8, 16), np.float32)
    compiled = through(lambda: f.lower(x).compile())
    (formats,), _ = compiled.input_formats
    got = compiled(jax.device_put(ramp(8, 16), formats))
    np.testing.assert_array_equal(got, ramp(8, 16).T * 2)


def test_memory_kinds():
    host = on("x", memory_kind="unpinned_host")
    f = jax.jit(lambda x: x + 1, in_shardings=host, out_shardings=host)
    try:
        want = f(ramp(8, 16)).sharding
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        pytest.skip(f"stock JAX can not: {error}")
    assert through(f, ramp(8, 16)).sharding == want


def test_aot_serialisation():
    from jax.experimental import serialize_executable as se

    f = jax.jit(lambda x: x @ x.T)
    x = put("x", "y")
    compiled = through(lambda: f.lower(x).compile())
    loaded = se.deserialize_and_load(*se.serialize(compiled), execution_devices=jax.devices())
    np.testing.assert_allclose(loaded(x), ramp(8, 16) @ ramp(8, 16).T, rtol=1e-5)


def test_export_and_call():
    x = put("x", "y")
    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) @ x.T))(x)
    same_as_stock(jax.jit(exported.call), x)


def test_persistent_cache(tmp_path):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = [getattr(jax.config, n) for n in names]
    from jax.experimental.compilation_cache import compilation_cache

    try:
        for name, value in zip(names, (str(tmp_path), 0), strict=True):
            jax.config.update(name, value)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()
        f = functools.partial(lambda k, x: x @ x.T + k, 41)
        through(jax.jit(f), put("x", "y"))
        entries = len(list(tmp_path.iterdir()))
        assert entries
        jax.clear_caches()
        through(jax.jit(f), put("x", "y"))
        assert len(list(tmp_path.iterdir())) == entries, "a miss the second time"
        jax.clear_caches()
        jax.jit(f)(put("x", "y"))
        assert len(list(tmp_path.iterdir())) > entries, "stock and ours share an entry"
    finally:
        for name, value in zip(names, before, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()


def test_pure_callback():
    def f(x):
        s = x.sum(1)
        return jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct(s.shape, s.dtype), s) * 2

    same_as_stock(jax.jit(f), put("x", "y"))


def test_io_callback_and_debug_print_run_once(capfd):
    from jax.experimental import io_callback

    calls = []

    def f(x):
        io_callback(lambda v: calls.append(float(v)), None, x.sum())
        jax.debug.print("sum is {}", x.sum())
        return x * 2

    with gspmd.use():
        jax.block_until_ready(jax.jit(f)(put("x", "y")))
        jax.effects_barrier()
    assert calls == [float(ramp(8, 16).sum())]
    assert capfd.readouterr().out.count("sum is") == 1


def test_pmap():
    f = jax.pmap(lambda x: x * lax.psum(x.sum(), "d"), axis_name="d")
    same_as_stock(f, ramp(8, 4))


def test_hoisted_constants_and_closures():
    big = jnp.asarray(ramp(64, 16))
    same_as_stock(jax.jit(lambda x: x @ big.T), put("x", "y"))


def test_scalars_empty_arrays_and_dtypes():
    f = jax.jit(lambda x, n, e: (x * n, n + 1, e, x.astype(jnp.bfloat16), x > 1, jnp.int8(3)))
    same_as_stock(f, put("x", "y"), 3, np.zeros((0, 4), np.float32))


def test_no_warnings_and_no_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_as_stock(jax.jit(lambda x: x * 3 - x.mean()), put("x", "y"))


def test_errors_of_the_user_are_jax_errors():
    with gspmd.use():
        with pytest.raises(ValueError, match="partitioned 4 times"):
            jax.jit(lambda x: x, in_shardings=on("y"))(ramp(6, 4))
        with pytest.raises(TypeError):
            jax.jit(lambda x: x @ x)(put("x"))
