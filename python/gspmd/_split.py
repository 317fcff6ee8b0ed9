"""The annotations of the GSPMD paper: mesh_split, and pipelining by a shifting buffer."""

import operator

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec


def mesh_split(x, mesh: Mesh | AbstractMesh, dims_mapping):
    """x with dimension d split over mesh axis dims_mapping[d]; -1 or None leaves it whole.

    Axes are given by number or name, as in `mesh_split(x, mesh, [0, -1])`. Raises ValueError for a
    mapping of another length than x has dimensions, an axis that the mesh does not have, or an axis
    used twice.
    """
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(f"mesh_split: mesh must be a Mesh, got {type(mesh).__name__}")
    rank = jnp.ndim(x)
    if len(dims_mapping) != rank:
        raise ValueError(
            f"mesh_split: dims_mapping has {len(dims_mapping)} entries, x has {rank} dimensions"
        )
    spec = [_axis_name(mesh, axis, d) for d, axis in enumerate(dims_mapping)]
    used = [a for a in spec if a is not None]
    for a in used:
        if used.count(a) > 1:
            raise ValueError(f"mesh_split: axis {a!r} of the mesh splits two dimensions")
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    if any(mesh._name_to_type[a] == AxisType.Explicit for a in used):
        return jax.sharding.reshard(x, sharding)
    return lax.with_sharding_constraint(x, sharding)


def _axis_name(mesh, axis, dim):
    if axis is None:
        return None
    if isinstance(axis, str):
        if axis not in mesh.axis_names:
            raise ValueError(f"mesh_split: dims_mapping[{dim}]: the mesh has no axis {axis!r}")
        return axis
    number = operator.index(axis)
    if not -1 <= number < len(mesh.axis_names):
        raise ValueError(
            f"mesh_split: dims_mapping[{dim}] is {number}, the mesh has {len(mesh.axis_names)} axes"
        )
    return None if number == -1 else mesh.axis_names[number]


def pipeline(stage_fn, weights, microbatches, *, mesh=None, axis=None, rounds: int = 1):
    """Runs microbatches through a chain of equal stages, all stages at once on different ones.

    stage_fn(w, x) -> y: one stage; y has x's shape and type.
    weights: a pytree whose leaves have stages * rounds on dimension 0, in the order of the chain.
    microbatches: [number, ...], each element goes through all stages.
    mesh, axis: the stages' dimension is split over this axis of the mesh (else by annotations of
      `weights`). The shifting buffer then becomes collective-permutes.
    rounds: 1 is GPipe's schedule; more is the circular one, where stage s holds the weights s,
      s + stages, ..., so that a shorter bubble is paid with more communication. It needs at least
      as many microbatches as stages.

    Returns the results of the last stage, [number, ...]. Differentiable; everything may be jitted.
    """
    total = {leaf.shape[0] for leaf in jax.tree.leaves(weights)}
    if len(total) != 1:
        raise ValueError(f"pipeline: weights disagree on dimension 0: {sorted(total)}")
    (total,) = total
    if rounds < 1 or total % rounds:
        raise ValueError(f"pipeline: {total} stages of weights do not divide by rounds={rounds}")
    stages, number = total // rounds, microbatches.shape[0]
    if rounds > 1 and number < stages:
        raise ValueError(
            f"pipeline: the circular schedule needs at least {stages} microbatches, got {number}"
        )

    def split(x, dim=0):
        if axis is None:
            return x
        return mesh_split(x, mesh, [axis if d == dim else None for d in range(x.ndim)])

    # [rounds, stages, ...]: a stage's weights of all rounds stay where the stage is.
    weights = jax.tree.map(lambda w: split(w.reshape(rounds, stages, *w.shape[1:]), dim=1), weights)
    stage_numbers, zero = jnp.arange(stages), jnp.zeros((), microbatches.dtype)

    def step(carry, t):
        buffer, waiting, results = carry
        # Stage 0 takes a fresh microbatch in the first round, later what came around.
        turn = t % jnp.maximum(number, 1)
        fresh = lax.dynamic_index_in_dim(microbatches, turn, keepdims=False)
        again = lax.dynamic_index_in_dim(waiting, turn, keepdims=False)
        first = jnp.where(t < number, fresh, again)
        # The shift: stage s hands on to s + 1.
        shifted = lax.pad(buffer, zero, [(1, -1, 0), *[(0, 0, 0)] * first.ndim])
        mask = (stage_numbers == 0).reshape(-1, *[1] * first.ndim)
        inputs = split(jnp.where(mask, first[None], shifted))
        round_of = jnp.clip((t - stage_numbers) // number, 0, rounds - 1)
        mine = jax.tree.map(lambda w: _select_round(w, round_of), weights)
        buffer = split(jax.vmap(stage_fn)(mine, inputs))
        # What leaves the last stage: a result, or the input of the next round.
        out = (t - (stages - 1)) % number
        leaving = buffer[-1]
        finished = t - (stages - 1) >= number * (rounds - 1)
        results = _put(results, leaving, out, finished)
        waiting = _put(waiting, leaving, out, jnp.logical_not(finished) & (t >= stages - 1))
        return (buffer, waiting, results), None

    buffer = split(jnp.zeros((stages, *microbatches.shape[1:]), microbatches.dtype))
    empty = jnp.zeros_like(microbatches)
    steps = number * rounds + stages - 1
    (_, _, results), _ = lax.scan(step, (buffer, empty, empty), jnp.arange(steps))
    return results


def _select_round(w, round_of):
    """w[round_of[s], s] for every stage s, without moving weights between stages."""
    if w.shape[0] == 1:
        return w[0]
    shape = (-1, w.shape[1], *[1] * (w.ndim - 2))
    chosen = (jnp.arange(w.shape[0])[:, None] == round_of[None, :]).reshape(shape)
    return jnp.sum(jnp.where(chosen, w, jnp.zeros((), w.dtype)), axis=0)


def _put(array, value, index, condition):
    old = lax.dynamic_index_in_dim(array, index, keepdims=False)
    return lax.dynamic_update_index_in_dim(array, jnp.where(condition, value, old), index, 0)
