"""Programs that must behave under gspmd as under stock JAX, in all that a program can see.

A case is a function without arguments that returns a tree of results. `check` runs it twice, first
as it is and then with gspmd installed, and compares values, types, shardings, errors and warnings.
"""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import gspmd

AUTO = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def on(*spec, mesh=AUTO, **kwargs):
    return NamedSharding(mesh, P(*spec), **kwargs)


def ramp(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)).reshape(shape) % 61 / 16 - 1.5).astype(dtype)


def put(*spec, shape=(8, 16), mesh=AUTO, dtype=np.float32):
    return jax.device_put(ramp(*shape, dtype=dtype), on(*spec, mesh=mesh))


def permuted(order=(0, 4, 1, 5, 2, 6, 3, 7), shape=(2, 4), names=("x", "y")):
    devices = np.array(jax.devices())[list(order)]
    return Mesh(devices.reshape(shape), names, axis_types=(AxisType.Auto,) * len(names))


class Outcome:
    """What became of a case: its result or its error, and the warnings."""

    def __init__(self, f):
        self.result = self.error = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.result = jax.block_until_ready(f())
            except Exception as error:  # compared, whatever it is
                self.error = error
        self.warnings = sorted(
            f"{w.category.__name__}: {without_ids(str(w.message))}" for w in caught
        )


def without_ids(text):
    return re.sub(r"0x[0-9a-f]+|\bid=\d+", "...", text)


def check(f, *, shardings=True, ours=True):
    """shardings: whether those of the results must be stock JAX's (not where the compiler chooses).

    ours: whether gspmd must have partitioned something in it.
    """
    jax.clear_caches()
    stock = Outcome(f)
    before = gspmd.last_report()
    jax.clear_caches()
    gspmd.install()
    try:
        got = Outcome(f)
    finally:
        gspmd.uninstall()
    if got.error is not None and stock.error is None:
        raise got.error
    if stock.error is not None:
        assert got.error is not None, f"stock JAX refuses this: {stock.error!r}"
        assert type(got.error) is type(stock.error), f"{got.error!r} for {stock.error!r}"
        assert without_ids(str(got.error)) == without_ids(str(stock.error)), "another message"
        return
    assert got.warnings == stock.warnings
    leaves, structure = jax.tree_util.tree_flatten_with_path(got.result)
    wanted, wanted_structure = jax.tree.flatten(stock.result)
    assert structure == wanted_structure
    for (path, leaf), want in zip(leaves, wanted, strict=True):
        _same_leaf(f"result{jax.tree_util.keystr(path)}", leaf, want, shardings)
    if ours:
        assert gspmd.last_report() is not before, "nothing came through gspmd"


def _same_leaf(name, got, want, shardings):
    if not isinstance(want, jax.Array):
        if isinstance(want, np.ndarray | np.generic | float):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            assert got == want, f"{name}: {got!r} for {want!r}"
        return
    assert (got.dtype, got.shape, got.aval.weak_type, got.committed) == (
        *(want.dtype, want.shape, want.aval.weak_type, want.committed),
    ), name
    if shardings:
        assert got.sharding == want.sharding, f"{name}: {got.sharding} for {want.sharding}"
        assert got.aval.sharding == want.aval.sharding, f"{name}: type"
        if hasattr(want, "format"):  # keys have none
            assert got.format == want.format, f"{name}: {got.format} for {want.format}"
    else:
        assert got.sharding.device_set == want.sharding.device_set, name
        assert got.sharding.memory_kind == want.sharding.memory_kind, name
    if jnp.issubdtype(want.dtype, jax.dtypes.prng_key):
        got, want = jax.random.key_data(got), jax.random.key_data(want)
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.kind in "biu" or want.dtype.itemsize == 0:
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    scale = float(np.max(np.abs(want), initial=0, where=np.isfinite(want)))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5 * scale, err_msg=name)


class Cases(dict):
    """Cases by name: `@cases` adds one, `@cases(shardings=False)` one with options for `check`."""

    def __call__(self, f=None, **options):
        if f is None:
            return lambda g: self(g, **options)
        assert f.__name__ not in self, f.__name__
        self[f.__name__] = lambda: check(f, **options)
        return f
