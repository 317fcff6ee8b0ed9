"""Sizes that do not divide: 10 hidden units over 4 devices, 3 on each and 1 on the last.

JAX takes arrays in equal pieces, so the weights arrive whole; inside, the constraint splits the
hidden dimension all the same, and the padding never reaches a result.

After `pip install .`:
    python examples/jax/uneven.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P

import gspmd

MESH = common.mesh(data=2, model=4)


def init(key):
    up, down = jax.random.normal(key, (2, 16, 10)) * 0.3
    return {"up": up, "down": down.T}


def loss(w, batch):
    x, y = batch
    hidden = gspmd.mesh_split(jnp.tanh(x @ w["up"]), MESH, ["data", "model"])
    hidden = hidden / (1 + jnp.sum(hidden**2, -1, keepdims=True))
    return jnp.mean((hidden @ w["down"] - y) ** 2)


def main():
    batch = jax.random.normal(jax.random.key(1), (2, 8, 16))
    split = {"up": P(), "down": P()}
    common.train(loss, init(jax.random.key(0)), tuple(batch), MESH, split, P("data"))


if __name__ == "__main__":
    main()
