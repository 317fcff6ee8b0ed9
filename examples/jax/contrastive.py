"""A contrastive loss over a large batch, in tiles, so that no device holds the whole matrix.

Images and texts are split over the devices. The texts go round in a ring (a rotation of whole
shards: collective-permutes) while each device keeps a running maximum and sum of its rows.

After `pip install .`:
    python examples/jax/contrastive.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P
from jax import lax

import gspmd

DEVICES, FEATURES, WIDTH = 8, 24, 16
MESH = common.mesh(d=DEVICES)


def init(key):
    image, text = jax.random.normal(key, (2, FEATURES, WIDTH)) * 0.2
    return {"image": image, "text": text}


def loss(w, batch):
    images, texts = batch[0] @ w["image"], batch[1] @ w["text"]
    blocks = gspmd.mesh_split(texts.reshape(DEVICES, -1, WIDTH), MESH, [0, -1, -1])
    rows = gspmd.mesh_split(images.reshape(DEVICES, -1, WIDTH), MESH, [0, -1, -1])

    def tile(carry, _):
        top, total, ring = carry
        scores = jnp.einsum("drw,dcw->drc", rows, ring)
        higher = jnp.maximum(top, lax.stop_gradient(scores.max(-1)))
        total = total * jnp.exp(top - higher) + jnp.exp(scores - higher[..., None]).sum(-1)
        return (higher, total, jnp.roll(ring, 1, axis=0)), None

    start = (jnp.full(rows.shape[:2], -1e9), jnp.zeros(rows.shape[:2]), blocks)
    (top, total, _), _ = lax.scan(tile, start, length=DEVICES)
    return jnp.mean(jnp.log(total) + top - jnp.einsum("drw,drw->dr", rows, blocks))


def main():
    batch = jax.random.normal(jax.random.key(1), (2, 64, FEATURES))
    split = {"image": P(), "text": P()}
    common.train(loss, init(jax.random.key(0)), tuple(batch), MESH, split, P("d"))


if __name__ == "__main__":
    main()
