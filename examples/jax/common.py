"""What the examples share: a mesh of 8 devices, and a few steps of training in two ways."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import gspmd


def mesh(**axes):
    """mesh(data=2, model=4)"""
    auto = (AxisType.Auto,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=auto)


def sgd_step(loss, rate):
    def step(params, batch):
        value, gradient = jax.value_and_grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradient), value

    return step


def train(loss, params, batch, mesh, param_specs, batch_spec, steps=4, rate=0.05):
    """Trains on one device with stock JAX and on the mesh with gspmd; compares and reports.

    param_specs: a PartitionSpec for each leaf of params; batch_spec: one for all of the batch.
    """
    step = jax.jit(sgd_step(loss, rate))
    alone, losses_alone = params, []
    for _ in range(steps):
        alone, value = step(alone, batch)
        losses_alone.append(float(value))

    def place(x, spec):
        return jax.device_put(x, NamedSharding(mesh, spec))

    sharded = jax.tree.map(place, params, param_specs)
    batch = jax.tree.map(lambda x: place(x, batch_spec), batch)
    print(gspmd.partition(step, sharded, batch).explain())
    losses = []
    with gspmd.use():
        for _ in range(steps):
            sharded, value = step(sharded, batch)
            losses.append(float(value))
    for k, (a, b) in enumerate(zip(losses_alone, losses, strict=True)):
        print(f"step {k}: loss {a:.6f} on one device, {b:.6f} on {mesh.size}")
    np.testing.assert_allclose(losses, losses_alone, rtol=1e-4)


__all__ = ["P", "mesh", "train"]
