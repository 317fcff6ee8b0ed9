"""Data and tensor parallelism from two annotations.

The weights are split over `model`, the batch over `data`; all else follows.

After `pip install .`:
    python examples/jax/transformer.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P
from jax import lax

HEADS, WIDTH, HIDDEN, LAYERS = 4, 32, 128, 2


def init(key):
    def matrix(k, *shape):
        return jax.random.normal(jax.random.fold_in(key, k), (LAYERS, *shape)) * shape[0] ** -0.5

    return {
        "qkv": matrix(0, WIDTH, 3 * WIDTH),
        "out": matrix(1, WIDTH, WIDTH),
        "up": matrix(2, WIDTH, HIDDEN),
        "down": matrix(3, HIDDEN, WIDTH),
    }


def normalise(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def layer(x, w):
    batch, length, _ = x.shape
    q, k, v = jnp.split((normalise(x) @ w["qkv"]).reshape(batch, length, 3 * HEADS, -1), 3, 2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    x = x + mixed.reshape(batch, length, WIDTH) @ w["out"]
    return x + jax.nn.relu(normalise(x) @ w["up"]) @ w["down"], None


def loss(w, batch):
    x, y = batch
    return jnp.mean((lax.scan(layer, x, w)[0] - y) ** 2)


def main():
    mesh = common.mesh(data=2, model=4)
    # The two annotations: how the weights are split, and how the batch is.
    split = {"qkv": P(None, None, "model"), "out": P(), "up": P(None, None, "model"), "down": P()}
    batch = jax.random.normal(jax.random.key(1), (2, 8, 16, WIDTH))
    common.train(loss, init(jax.random.key(0)), tuple(batch), mesh, split, P("data"))


if __name__ == "__main__":
    main()
