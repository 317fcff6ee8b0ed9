"""gspmd.draw: which device holds which block, for any rank."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import gspmd

MESH = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)


def test_two_dimensions():
    x = jax.device_put(jnp.zeros((8, 16)), NamedSharding(MESH, P("x", "y")))
    assert str(gspmd.draw(x)).splitlines() == [
        "8x16 as P('x', 'y'): devices of each block",
        "      0:4   4:8   8:12   12:16",
        "    +-----+-----+------+-------+",
        "0:4 |  0  |  1  |  2   |   3   |",
        "    +-----+-----+------+-------+",
        "4:8 |  4  |  5  |  6   |   7   |",
        "    +-----+-----+------+-------+",
    ]


def test_other_ranks():
    one = str(gspmd.draw(NamedSharding(MESH, P("x")), (8,)))
    assert "| 0-3 | 4-7 |" in one
    assert "| 0-7 |" in str(gspmd.draw(NamedSharding(MESH, P()), ()))
    uneven = str(gspmd.draw(NamedSharding(MESH, P("x", None, ("y",))), (5, 3, 7)))
    assert "[0:3, :, :]" in uneven and "[3:5, :, :]" in uneven and "6:7" in uneven
    assert "[0:4, 0:1, :, :]" in str(gspmd.draw(NamedSharding(MESH, P("x", "y")), (8, 4, 2, 2)))


def test_agrees_with_jax():
    order = np.array(jax.devices())[[7, 2, 5, 0, 6, 1, 4, 3]].reshape(4, 2)
    sharding = NamedSharding(Mesh(order, ("a", "b")), P(("b", "a"), None))
    counts, sizes, devices = gspmd.draw(sharding, (16, 3))._blocks()
    assert counts == [8, 1] and sizes == [2, 3]
    for device, index in sharding.devices_indices_map((16, 3)).items():
        assert devices[(index[0].start // 2, 0)] == [device.id]


def test_other_shardings_and_large_meshes():
    single = gspmd.draw(SingleDeviceSharding(jax.devices()[3]), (4, 4))
    assert "|  3  |" in str(single)
    large = str(
        gspmd.draw(NamedSharding(AbstractMesh((32, 64), ("x", "y")), P("y", "x")), (64, 32))
    )
    assert "..." in large and len(large) < 4000
    assert "<td" in gspmd.draw(jnp.zeros((2, 2)))._repr_html_()


def test_errors():
    with pytest.raises(TypeError, match="shape"):
        gspmd.draw(NamedSharding(MESH, P()))
    with pytest.raises(TypeError, match="no sharding, got int"):
        gspmd.draw(3)
    with pytest.raises(TypeError, match="own shape"):
        gspmd.draw(jnp.zeros(3), (3,))
    with pytest.raises(ValueError, match="2 entries for 1 dim"):
        gspmd.draw(NamedSharding(MESH, P("x", "y")), (8,))
