"""Assertions about partitioned programs, for pytest and others."""

import jax
import numpy as np

from gspmd._collectives import Collectives
from gspmd._partition import partition


def collectives(f, *args, **kwargs) -> Collectives:
    """The collectives of jitted `f` on these arguments."""
    return partition(f, *args, **kwargs).collectives()


def assert_collectives(f, *args, **kwargs) -> None:
    """assert_collectives(f, *args, {"all-gather": 0, "total-bytes": 4096}): the last one is wanted.

    Names are HLO's; each says how many instructions of this kind there are. "total-bytes" and
    "wire-bytes" are upper bounds in bytes per device. Kinds that are not named may occur.
    """
    given, expected = args[:-1], args[-1] if args else None
    if not isinstance(expected, dict):
        raise TypeError("assert_collectives: the last argument is a dict of what is expected")
    found = collectives(f, *given, **kwargs)
    limits = {"total-bytes": found.total_bytes, "wire-bytes": found.wire_bytes}
    wrong = [
        f"{name}: at most {most}, got {limits[name]:g}"
        for name, most in expected.items()
        if name in limits and limits[name] > most
    ]
    counts = found.counts()
    wrong += [
        f"{kind}: expected {count}, got {counts.get(kind, 0)}"
        for kind, count in expected.items()
        if kind not in limits and counts.get(kind, 0) != count
    ]
    if wrong:
        raise AssertionError("\n".join([*wrong, str(found)]))


def assert_same_as_unsharded(f, *args, rtol=1e-5, atol=1e-5, **kwargs) -> None:
    """Jitted `f` under gspmd gives what its Python function gives without sharded arguments.

    Integers must be equal; floats agree within rtol of the value plus atol of the largest one.
    """
    got = partition(f, *args, **kwargs)(*args, **kwargs)
    inner = getattr(f, "__wrapped__", f)
    want = jax.jit(inner)(*jax.device_get(args), **jax.device_get(kwargs))

    def compare(path, a, b):
        a, b = np.asarray(a), np.asarray(b)
        where = f"result{jax.tree_util.keystr(path)}"
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b, err_msg=where)
            return
        scale = float(np.max(np.abs(b), initial=0))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * scale, err_msg=where)

    jax.tree_util.tree_map_with_path(compare, got, want)
