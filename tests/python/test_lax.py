"""Each public operator of jax.lax, sharded over 8 devices, gives under gspmd what stock JAX gives.

The reference runs on one device: XLA's own partitioner aborts on some of these programs.
"""

import jax
import lax_cases_structured  # noqa: F401  (adds its cases)
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from lax_cases import CASES

import gspmd

MESH = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
# Which axes each dimension of a first, second, ... argument is offered, major dimension first.
LAYOUTS = {
    "major": (("x", "y"), ("y", "x"), (None, "x")),
    "minor": ((None, ("x", "y")), ("y", None, "x"), ("x", "y")),
}


def place(x, axes):
    """x on the mesh; an axis is used where the dimension divides."""
    spec = []
    for d, size in enumerate(np.shape(x)):
        axis = axes[d] if d < len(axes) else None
        names = axis if isinstance(axis, tuple) else (axis,) if axis else ()
        shards = int(np.prod([MESH.shape[n] for n in names]))
        spec.append(axis if size % shards == 0 else None)
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        scale = np.max(np.abs(want), initial=1e-3, where=np.isfinite(want))
        tolerance = 1e-2 if want.dtype.itemsize == 2 else 3e-6
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * float(scale))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_operator(name, layout):
    f, args = CASES[name]
    jitted = jax.jit(f)
    want = jitted(*args)
    args = [place(x, LAYOUTS[layout][min(k, 2)]) for k, x in enumerate(args)]
    before = gspmd.last_report()
    with gspmd.use():
        got = jitted(*args)
    assert gspmd.last_report() is not before, "the program did not come through gspmd"
    jax.tree.map(same, got, want)
