"""A mixture of experts: tokens travel to their experts and back by all-to-all.

Tokens are split over the devices by group, experts by number. The dispatched tensor has both
dimensions; asking for it split by experts is all that it takes.

After `pip install .`:
    python examples/jax/moe.py
It prints the shardings and the collectives, then the losses on one device and on 8, which must be
equal.
"""

import common
import jax
import jax.numpy as jnp
from common import P

import gspmd

EXPERTS, CAPACITY, WIDTH, HIDDEN = 8, 8, 16, 64
MESH = common.mesh(expert=8)


def init(key):
    def normal(k, *shape):
        return jax.random.normal(jax.random.fold_in(key, k), shape) * shape[-2] ** -0.5

    return {
        "gate": normal(0, WIDTH, EXPERTS),
        "up": normal(1, EXPERTS, WIDTH, HIDDEN),
        "down": normal(2, EXPERTS, HIDDEN, WIDTH),
    }


def loss(w, batch):
    x, y = batch  # [groups, tokens, width]
    gates = jax.nn.softmax(x @ w["gate"])
    choice = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
    place = jnp.cumsum(choice, 1) * choice - 1  # of a token in its expert's buffer
    dispatch = jax.nn.one_hot(place, CAPACITY) * choice[..., None]
    sent = jnp.einsum("gtec,gtw->gecw", dispatch, x)
    # From split by groups to split by experts: an all-to-all.
    sent = gspmd.mesh_split(sent, MESH, [-1, 0, -1, -1])
    hidden = jax.nn.relu(jnp.einsum("gecw,ewh->gech", sent, w["up"]))
    result = jnp.einsum("gech,ehw->gecw", hidden, w["down"])
    # And back.
    result = gspmd.mesh_split(result, MESH, [0, -1, -1, -1])
    combine = dispatch * jnp.max(gates, -1)[..., None, None]
    return jnp.mean((jnp.einsum("gtec,gecw->gtw", combine, result) - y) ** 2)


def main():
    split = {"gate": P(), "up": P("expert"), "down": P("expert")}
    batch = jax.random.normal(jax.random.key(1), (2, 8, 32, WIDTH))
    common.train(loss, init(jax.random.key(0)), tuple(batch), MESH, split, P("expert"))


if __name__ == "__main__":
    main()
