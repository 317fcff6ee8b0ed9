"""`gspmd.partition`: what a program becomes on many devices, and running it."""

import dataclasses
import html
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
    try:
        inner = _core.partition(
            source.code, source.name, num_partitions, source.free_parameters, source.free_results
        )
    except _core.Error as error:
        raise _core.Error(source.with_names(str(error))) from None
    return Partitioned(inner, source)


@dataclasses.dataclass(frozen=True)
class MemoryAnalysis:
    """Bytes on one device; fields are also entries: `m["temp_size_in_bytes"]`."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int  # of results in the buffers of donated arguments
    temp_size_in_bytes: int  # what the peak holds besides arguments and results
    peak_memory_in_bytes: int
    generated_code_size_in_bytes: int = 0  # not known before XLA compiles

    def __getitem__(self, name: str) -> int:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> list[str]:
        return [field.name for field in dataclasses.fields(self)]


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
        everything: list = [None] * len(self._source.input_names or [])
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

    def _interface(self):
        """(name, sharding) of each parameter and result."""
        inputs = self._named(self._inner.input_axes, self._inner.input_shardings)
        outputs = self._named(self._inner.output_axes, self._inner.output_shardings)
        names = self._source.parameter_names(len(inputs))
        results = self._source.output_names or [f"result {k}" for k in range(len(outputs))]
        return [*zip(names, inputs, strict=True), *zip(results, outputs, strict=True)]

    def collectives(self) -> Collectives:
        """What is communicated and why, the most bytes first."""
        lines = json.loads(self._inner.explanations_json())
        names = [f for f in Collective.__dataclass_fields__]
        return Collectives(Collective(**{n: line[n] for n in names}) for line in lines)

    def stats(self) -> dict[str, Any]:
        """All figures, as `gspmd stats` writes them."""
        return json.loads(self._inner.stats_json())

    def cost_analysis(self) -> dict[str, float]:
        """Of one device, under JAX's keys; loops are counted as often as they run.

        "flops": floating-point operations; "transcendentals": elements of exp, sqrt and the like;
        "bytes accessed": read and written, before any fusion.
        """
        stats = self.stats()
        return {
            "flops": float(sum(stats["flops"].values())),
            "transcendentals": self._inner.transcendentals(),
            "bytes accessed": float(stats["bytes_touched"]),
        }

    def memory_analysis(self) -> "MemoryAnalysis":
        """Bytes on one device, under the names of JAX's `CompiledMemoryStats`."""
        arguments, results, aliased, peak = self._inner.memory()
        return MemoryAnalysis(
            argument_size_in_bytes=arguments,
            output_size_in_bytes=results,
            alias_size_in_bytes=aliased,
            temp_size_in_bytes=max(0, peak - arguments - results + aliased),
            peak_memory_in_bytes=peak,
        )

    def explain(self) -> str:
        """For people: shardings of the interface, the table of collectives, warnings."""
        lines = [f"{self.num_partitions} devices"]
        lines += [f"  {name}: {_spec_text(sharding)}" for name, sharding in self._interface()]
        return "\n".join([*lines, str(self.collectives()), *self.warnings])

    @property
    def warnings(self) -> list[str]:
        """What could not be done well, with its place; parameters by the names of arguments."""
        return [self._source.with_names(w) for w in self._inner.warnings]

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
        rows = "".join(
            f'<tr><td style="text-align:left">{html.escape(name)}</td>'
            f'<td style="text-align:left">{html.escape(_spec_text(sharding))}</td></tr>'
            for name, sharding in self._interface()
        )
        return (
            f"<p>{self.num_partitions} devices</p>"
            f"<table><tr><th>array</th><th>sharding</th></tr>{rows}</table>"
            f"{self.collectives()._repr_html_()}"
        )


def _spec_text(sharding):
    return str(sharding.spec) if isinstance(sharding, NamedSharding) else str(sharding)


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
