"""`with gspmd.use():` gives what stock JAX gives, and touches nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import gspmd

MESH = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def sharded(*spec):
    return NamedSharding(MESH, P(*spec))


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 64


def layer(a, b):
    return jnp.tanh(a @ b)


def partitioned_here(f, *args):
    """f under gspmd, and the report that this very call left."""
    before = gspmd.last_report()
    with gspmd.use():
        out = f(*args)
    assert gspmd.last_report() is not before, "the program did not come through gspmd"
    return out


def test_equals_stock():
    f = jax.jit(layer, in_shardings=(sharded("x", None), sharded(None, "y")))
    args = ramp(8, 16), ramp(16, 8)
    got, want = partitioned_here(f, *args), f(*args)
    np.testing.assert_array_equal(got, want)
    assert got.sharding.is_equivalent_to(want.sharding, 2)


def test_contracting_dimension_split():
    f = jax.jit(layer, in_shardings=(sharded("x", "y"), sharded("y", None)))
    args = ramp(8, 16), ramp(16, 8)
    np.testing.assert_allclose(partitioned_here(f, *args), f(*args), rtol=1e-6)
    assert "all-reduce" in gspmd.last_report().as_text()


def test_one_device_passes_untouched():
    before = gspmd.last_report()
    with gspmd.use():
        jax.jit(lambda x: x * 3 + 1)(ramp(4, 4))
    assert gspmd.last_report() is before


def test_same_function_inside_and_outside_keeps_both_executables():
    f = jax.jit(lambda a: jnp.sum(a, 0) * 5, in_shardings=sharded("x", "y"))
    x = ramp(8, 8)
    f(x)
    partitioned_here(f, x)
    first = gspmd.last_report()
    f(x)
    with gspmd.use():
        f(x)
    assert gspmd.last_report() is first, "compiled twice"


def test_install_and_uninstall():
    x = jax.device_put(ramp(8, 8), sharded("x", "y"))
    before = gspmd.last_report()
    gspmd.install()
    try:
        jax.jit(lambda a: a * 7 - 2)(x)
        assert gspmd.last_report() is not before
    finally:
        gspmd.uninstall()
    after = gspmd.last_report()
    jax.jit(lambda a: a * 11 - 2)(x)
    assert gspmd.last_report() is after


def test_what_gspmd_refuses_may_be_left_to_xla(monkeypatch):
    def refuse(*args):
        raise gspmd.Error("no such program")

    monkeypatch.setattr("gspmd._core.partition", refuse)
    x = jax.device_put(ramp(8, 8), sharded("x", "y"))
    with gspmd.use(), pytest.raises(gspmd.Error, match="no such"):
        jax.jit(lambda a: a * 13 - 2)(x)
    with gspmd.use(on_error="xla"), pytest.warns(UserWarning, match="to XLA: no such"):
        np.testing.assert_array_equal(jax.jit(lambda a: a * 13 - 2)(x), ramp(8, 8) * 13 - 2)
    with pytest.raises(ValueError, match="on_error"), gspmd.use(on_error="ignore"):
        pass
    with pytest.raises(ValueError, match="on_error"):
        gspmd.install(on_error=None)


def test_report_of_the_last_program():
    x = jax.device_put(ramp(8, 8), sharded("x", "y"))
    partitioned_here(jax.jit(lambda a: a @ a.T), x)
    report = gspmd.last_report()
    assert report.num_partitions == 8 and report.collectives() and "all-" in report.explain()
    assert report.memory_analysis().argument_size_in_bytes == 4 * 2 * 4


@pytest.mark.parametrize("donate", [False, True])
def test_donation(donate):
    f = jax.jit(
        lambda a: a + 1,
        in_shardings=sharded("x"),
        out_shardings=sharded("x"),
        donate_argnums=(0,) if donate else (),
    )
    x = jax.device_put(ramp(8, 8), sharded("x"))
    np.testing.assert_array_equal(partitioned_here(f, x), ramp(8, 8) + 1)
    assert x.is_deleted() == donate
