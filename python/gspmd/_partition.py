"""`gspmd.partition`: what a program becomes on many devices, and running it."""

import json
from typing import Any

import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from gspmd import _core, _program
from gspmd._collectives import Collective, Collectives
from gspmd._dropin import use


def partition(program, *args, num_partitions: int = 0, **kwargs) -> "Partitioned":
    """Completes the shardings of a program and partitions it for all devices of its mesh.

    program: a function under `jax.jit` with its arguments (arrays or `jax.ShapeDtypeStruct`, on a
      `Mesh` or on an `AbstractMesh` of any size), or what `.trace()`, `.lower()` or
      `jax.export.export` gave, or a text or bytes of StableHLO or HLO. A parameter or
      result without sharding is free in StableHLO; in HLO it is replicated unless the header says
      that it is free.
    num_partitions: only for texts that do not say it.

    Raises TypeError for what is none of these, gspmd.Error (a ValueError) for a program that can
    not be partitioned, and what JAX itself raises while it lowers the function.
    """
    source = _program.read(program, args, kwargs)
    inner = _core.partition(
        source.code, source.name, num_partitions, source.free_parameters, source.free_results
    )
    return Partitioned(inner, source)


class Partitioned:
    """A partitioned program. Bytes and operations are those of one device."""

    def __init__(self, inner: _core.Partitioned, source: "_program.Source"):
        self._inner = inner
        self._source = source

    def as_text(self, dialect: str = "hlo") -> str:
        """The per-device program as "hlo" or "stablehlo"."""
        formats = {"hlo": "hlo", "stablehlo": "mlir"}
        if dialect not in formats:
            raise ValueError(f'as_text: dialect is "hlo" or "stablehlo", got {dialect!r}')
        return self._inner.text(formats[dialect])

    @property
    def num_partitions(self) -> int:
        """Number of devices."""
        return self._inner.num_partitions

    @property
    def input_shardings(self) -> Any:
        """Of the arguments, as the function takes them: (positional, by keyword).

        A NamedSharding over the arguments' mesh, or HLO's text where a named one can not say it.
        """
        kept = self._named(self._inner.input_axes, self._inner.input_shardings)
        if self._source.kept is None:
            return self._source.unflatten_inputs(kept)
        everything: list = [None] * len(self._source.input_names)
        for number, sharding in zip(self._source.kept, kept, strict=True):
            everything[number] = sharding
        return self._source.unflatten_inputs(everything)

    @property
    def output_shardings(self) -> Any:
        """Of the results, as the function returns them."""
        return self._source.unflatten_outputs(
            self._named(self._inner.output_axes, self._inner.output_shardings)
        )

    def _named(self, axes, texts):
        mesh = self._source.mesh
        return [_named_sharding(mesh, a, t) for a, t in zip(axes, texts, strict=True)]

    def collectives(self) -> Collectives:
        """What is communicated and why, the most bytes first."""
        lines = json.loads(self._inner.explanations_json())
        names = [f for f in Collective.__dataclass_fields__]
        return Collectives(Collective(**{n: line[n] for n in names}) for line in lines)

    def stats(self) -> dict[str, Any]:
        """All figures, as `gspmd stats` writes them."""
        return json.loads(self._inner.stats_json())

    def cost_analysis(self) -> dict[str, float]:
        """ "flops" and "bytes accessed" of one device, loops counted as often as they run."""
        stats = self.stats()
        return {
            "flops": float(sum(stats["flops"].values())),
            "bytes accessed": float(stats["bytes_touched"]),
        }

    def memory_analysis(self) -> dict[str, int]:
        """Bytes on one device, under the names of JAX's `CompiledMemoryStats`.

        temp_size_in_bytes is what the peak holds besides arguments and results.
        """
        arguments, results, aliased, peak = self._inner.memory()
        return {
            "argument_size_in_bytes": arguments,
            "output_size_in_bytes": results,
            "alias_size_in_bytes": aliased,
            "temp_size_in_bytes": max(0, peak - arguments - results + aliased),
            "generated_code_size_in_bytes": 0,
            "peak_memory_in_bytes": peak,
        }

    def explain(self) -> str:
        """For people: shardings of the interface, the table of collectives, warnings."""
        inputs, outputs = self._inner.input_shardings, self._inner.output_shardings
        kept = range(len(inputs)) if self._source.kept is None else self._source.kept
        names = self._source.input_names or [f"parameter {k}" for k in kept]
        lines = [f"{self.num_partitions} devices"]
        lines += [f"  {names[k]}: {s}" for k, s in zip(kept, inputs, strict=True)]
        names = self._source.output_names or [f"result {k}" for k in range(len(outputs))]
        lines += [f"  {n}: {s}" for n, s in zip(names, outputs, strict=True)]
        return "\n".join([*lines, str(self.collectives()), *self._inner.warnings])

    def check(self, seed: int = 0) -> str:
        """Runs the program on one virtual device and on all, on made-up inputs.

        Returns a line for every result; raises AssertionError with them where two disagree.
        """
        agrees, report = self._inner.check(seed)
        if not agrees:
            raise AssertionError(report)
        return report

    def __call__(self, *args, **kwargs):
        """Runs on JAX's runtime, partitioned by gspmd; takes and returns what the function does."""
        if self._source.call is None:
            raise TypeError(
                "a program that was given as text can not be called; partition the jitted function"
            )
        with use():
            return self._source.call(*args, **kwargs)

    def __repr__(self):
        counts = ", ".join(f"{n} {k}" for k, n in self.collectives().counts().items())
        return (
            f"<gspmd.Partitioned for {self.num_partitions} devices: {counts or 'no collectives'}>"
        )

    def _repr_html_(self):
        return f"<p>{self.num_partitions} devices</p>{self.collectives()._repr_html_()}"


def _named_sharding(mesh: Mesh | AbstractMesh | None, axes: list[list[str]], text: str):
    if mesh is None or not all(a in mesh.shape for dim in axes for a in dim):
        return text
    spec = [None if not dim else dim[0] if len(dim) == 1 else tuple(dim) for dim in axes]
    while spec and spec[-1] is None:
        spec.pop()
    named = NamedSharding(mesh, PartitionSpec(*spec))
    splits = int(np.prod([mesh.shape[a] for dim in axes for a in dim], initial=1))
    manual = splits == 1 and text not in ("{replicated}", "{maximal device=0}")
    return text if manual else named
