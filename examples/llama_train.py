#!/usr/bin/env python3
"""A Llama-like training step, lowered by JAX for 8 devices: makes examples/llama_train_8.hlo.

    llama_train.py [OUT.hlo]

The model: token embedding, layers of (RMSNorm, grouped-query attention with rotary positions,
RMSNorm, SwiGLU), a final RMSNorm, an output projection and cross entropy; the step takes
the gradient and applies AdamW. Every layer has its own parameters (no scan over layers), so that
the program is as long as a real one. The devices are a mesh of data=2 x model=4. Only parameters,
optimizer state and the batch carry shardings, and two activations a constraint; all else is for
completion to find. Nothing is run: one CPU is enough. Needs jax 0.10.2.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _hlo

LAYERS, VOCAB, MODEL, HIDDEN = 6, 512, 64, 192
HEADS, KV_HEADS, HEAD = 8, 4, 16
BATCH, LENGTH = 8, 32
LEARNING_RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.95, 1e-8, 0.1

LAYER_SHAPES = {
    "attention_norm": ((MODEL,), P(None)),
    "wq": ((MODEL, HEADS, HEAD), P("data", "model", None)),
    "wk": ((MODEL, KV_HEADS, HEAD), P("data", "model", None)),
    "wv": ((MODEL, KV_HEADS, HEAD), P("data", "model", None)),
    "wo": ((HEADS, HEAD, MODEL), P("model", None, "data")),
    "mlp_norm": ((MODEL,), P(None)),
    "w_gate": ((MODEL, HIDDEN), P("data", "model")),
    "w_up": ((MODEL, HIDDEN), P("data", "model")),
    "w_down": ((HIDDEN, MODEL), P("model", "data")),
}
OUTER_SHAPES = {
    "embedding": ((VOCAB, MODEL), P("model", "data")),
    "final_norm": ((MODEL,), P(None)),
    "w_out": ((MODEL, VOCAB), P("data", "model")),
}


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def rotary(x):
    """Rotates the halves of each head by an angle that grows with the position."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * frequency
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def attention(x, p):
    q = rotary(jnp.einsum("btd,dhk->bthk", x, p["wq"]))
    k = rotary(jnp.einsum("btd,dgk->btgk", x, p["wk"]))
    v = jnp.einsum("btd,dgk->btgk", x, p["wv"])
    q = q.reshape(*q.shape[:2], KV_HEADS, HEADS // KV_HEADS, HEAD)
    scores = jnp.einsum("btgrk,bsgk->bgrts", q, k) / HEAD**0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), dtype=bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    mixed = jnp.einsum("bgrts,bsgk->btgrk", weights, v).reshape(*x.shape[:2], HEADS, HEAD)
    return jnp.einsum("bthk,hkd->btd", mixed, p["wo"])


def mlp(x, p, on_mesh):
    gate = jax.nn.silu(x @ p["w_gate"])
    return on_mesh(gate * (x @ p["w_up"]), P("data", None, "model")) @ p["w_down"]


def loss(params, tokens, targets, on_mesh):
    x = on_mesh(params["embedding"][tokens], P("data", None, None))
    for p in params["layers"]:
        x = x + attention(rms_norm(x, p["attention_norm"]), p)
        x = x + mlp(rms_norm(x, p["mlp_norm"]), p, on_mesh)
    logits = rms_norm(x, params["final_norm"]) @ params["w_out"]
    log_probs = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_probs, targets[..., None], axis=-1))


def adamw(value, gradient, mean, variance, step):
    mean = BETA1 * mean + (1 - BETA1) * gradient
    variance = BETA2 * variance + (1 - BETA2) * gradient * gradient
    scaled = (mean / (1 - BETA1**step)) / (jnp.sqrt(variance / (1 - BETA2**step)) + EPSILON)
    return value - LEARNING_RATE * (scaled + DECAY * value), mean, variance


def make_train_step(on_mesh):
    def train_step(params, mean, variance, step, tokens, targets):
        value, gradients = jax.value_and_grad(loss)(params, tokens, targets, on_mesh)
        step = step + 1
        leaves, tree = jax.tree.flatten(params)
        updated = [
            adamw(*of_leaf, step.astype(jnp.float32))
            for of_leaf in zip(
                leaves,
                jax.tree.leaves(gradients),
                jax.tree.leaves(mean),
                jax.tree.leaves(variance),
                strict=True,
            )
        ]
        params, mean, variance = (
            jax.tree.unflatten(tree, part) for part in zip(*updated, strict=True)
        )
        return params, mean, variance, step, value

    return train_step


def abstract_params(mesh):
    """Shapes and shardings of the parameters; no values are made."""

    def leaf(shape, spec):
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    params = {name: leaf(*of) for name, of in OUTER_SHAPES.items()}
    params["layers"] = [
        {name: leaf(*of) for name, of in LAYER_SHAPES.items()} for _ in range(LAYERS)
    ]
    return params


def lower():
    jax.config.update("jax_use_shardy_partitioner", False)
    # Names of files in the dump, not paths of the machine that made it.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def on_mesh(x, spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    params = abstract_params(mesh)
    batch = jax.ShapeDtypeStruct(
        (BATCH, LENGTH), jnp.int32, sharding=NamedSharding(mesh, P("data"))
    )
    step = jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(mesh, P()))
    jitted = jax.jit(
        make_train_step(on_mesh),
        out_shardings=jax.tree.map(lambda x: x.sharding, (params, params, params, step, step)),
        donate_argnums=(0, 1, 2),
    )
    return jitted.lower(params, params, params, step, batch, batch)


def hlo_text(lowered):
    """HLO text with the metadata and the source lines that `as_hlo_text` leaves out."""
    proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = True
    options.print_operand_shape = False
    text = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
    # The lowering leaves the number of devices to the compiler's options; we want it in the file.
    return text.replace("\n", f", num_partitions={len(jax.devices())}\n", 1)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "llama_train_8.hlo")
    text = hlo_text(lower())
    with open(out, "w") as file:
        file.write(text)
    print(f"{out}: {text.count(' = ')} instructions")


if __name__ == "__main__":
    main()
