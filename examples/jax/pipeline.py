"""A pipeline with the circular schedule in one call: stages on devices, microbatches between them.

Eight layers on four devices: device s holds the layers s and s + 4, so that the pipeline drains in
three steps instead of seven.

After `pip install .`:
    python examples/jax/pipeline.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P

import gspmd

LAYERS, ROUNDS, WIDTH = 8, 2, 32
MESH = common.mesh(stage=4, data=2)


def init(key):
    return {"w": jax.random.normal(key, (LAYERS, WIDTH, WIDTH)) * WIDTH**-0.5}


def stage(w, x):
    return x + jnp.tanh(x @ w)


def loss(params, batch):
    x, y = batch  # [microbatches, rows, width]
    out = gspmd.pipeline(stage, params["w"], x, mesh=MESH, axis="stage", rounds=ROUNDS)
    return jnp.mean((out - y) ** 2)


def main():
    batch = jax.random.normal(jax.random.key(1), (2, 6, 8, WIDTH))
    common.train(loss, init(jax.random.key(0)), tuple(batch), MESH, {"w": P()}, P(None, "data"))


if __name__ == "__main__":
    main()
