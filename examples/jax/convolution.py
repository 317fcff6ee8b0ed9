"""Convolutions split in space: neighbours exchange the rows at their borders (halo exchange).

After `pip install .`:
    python examples/jax/convolution.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P
from jax import lax

MESH = common.mesh(row=4, column=2)
SHAPES = {"first": (3, 3, 3, 8), "strided": (5, 5, 8, 8), "last": (3, 3, 8, 3)}


def init(key):
    return {
        name: jax.random.normal(jax.random.fold_in(key, k), shape) * 0.1
        for k, (name, shape) in enumerate(SHAPES.items())
    }


def convolve(x, w, stride=1):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


def loss(w, batch):
    x, y = batch
    x = jax.nn.relu(convolve(x, w["first"]))
    x = jax.nn.relu(convolve(x, w["strided"], stride=2))
    return jnp.mean((convolve(x, w["last"]) - y[:, ::2, ::2]) ** 2)


def main():
    batch = jax.random.normal(jax.random.key(1), (2, 2, 64, 32, 3))
    whole = {name: P() for name in SHAPES}
    common.train(loss, init(jax.random.key(0)), tuple(batch), MESH, whole, P(None, "row", "column"))


if __name__ == "__main__":
    main()
