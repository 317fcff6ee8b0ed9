"""Pictures of shardings: which device holds which block of an array."""

import dataclasses
import html
import itertools

import numpy as np
from jax.sharding import Mesh, NamedSharding, Sharding

_MOST_BLOCKS = 8  # drawn along a dimension; the rest is "..."
_MOST_SHEETS = 8  # of two dimensions each
_COLOURS = ("#cfe3f5", "#f7dfc4", "#d5ecd0", "#f3d0d6", "#e2d6f0", "#efe8c2", "#cdeceb", "#e3e3e3")


def draw(array, shape=None) -> "Drawing":
    """A picture of the sharding of an array, or of a sharding and a shape.

    array: a `jax.Array`, a `jax.ShapeDtypeStruct` with a sharding, or a `jax.sharding.Sharding` (a
      `NamedSharding` may be over an `AbstractMesh`: then devices are numbered in its order).
    shape: sizes in elements, of any rank; only, and always, with a sharding.

    Prints as text, and as a table in notebooks. Raises TypeError for what has no sharding,
    ValueError where the sharding does not fit the shape.
    """
    if isinstance(array, Sharding):
        if shape is None:
            raise TypeError("draw: `shape` is needed with a sharding")
        return Drawing(array, tuple(shape))
    if shape is not None:
        raise TypeError("draw: an array has its own shape; `shape` goes with a sharding")
    sharding = getattr(array, "sharding", None)
    if not isinstance(sharding, Sharding):
        raise TypeError(f"draw: `array` has no sharding, got {type(array).__name__}")
    return Drawing(sharding, tuple(array.shape))


@dataclasses.dataclass(frozen=True)
class Drawing:
    """What `draw` gives. The last two dimensions are a sheet; leading ones number the sheets."""

    sharding: Sharding
    shape: tuple[int, ...]

    def __post_init__(self):
        self._blocks()

    def _blocks(self):
        """(number of blocks in each dimension, their sizes, devices by block)."""
        if isinstance(self.sharding, NamedSharding):
            return _named_blocks(self.sharding, self.shape)
        return _indexed_blocks(self.sharding, self.shape)

    def _sheets(self):
        """Of each sheet its heading, its labels of columns, and its rows: a label, cells."""
        counts, sizes, devices = self._blocks()
        rank = len(self.shape)
        rows = range(counts[-2]) if rank > 1 else range(1)
        columns = range(counts[-1]) if rank > 0 else range(1)
        leading = list(itertools.product(*(range(n) for n in counts[:-2])))
        for place in leading[:_MOST_SHEETS]:
            heading = [_interval(d, k, sizes, self.shape) for d, k in enumerate(place)]
            labels = [_interval(rank - 1, c, sizes, self.shape) for c in columns] if rank else [""]
            body = []
            for r in rows:
                label = _interval(rank - 2, r, sizes, self.shape) if rank > 1 else ""
                keys = [(*place, r, c)[-rank:] if rank else () for c in columns]
                body.append((label, [_listed(devices.get(k, [])) for k in keys[:_MOST_BLOCKS]]))
            yield (
                _of_sheet(heading),
                labels[:_MOST_BLOCKS],
                body[:_MOST_BLOCKS],
                (
                    len(columns) > _MOST_BLOCKS,
                    len(rows) > _MOST_BLOCKS,
                ),
            )
        if len(leading) > _MOST_SHEETS:
            yield f"... and {len(leading) - _MOST_SHEETS} more", [], [], (False, False)

    def __str__(self):
        lines = [self._title()]
        for heading, labels, body, (wide, tall) in self._sheets():
            if heading:
                lines.append(heading)
            if not labels:
                continue
            rows = [["", *labels], *([label, *cells] for label, cells in body)]
            if wide:
                rows = [[*row, "..."] for row in rows]
            widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
            rule = "+".join("-" * (w + 2) for w in widths[1:])
            edge = " " * (widths[0] + 1) + "+" + rule + "+"
            for k, row in enumerate(rows):
                cells = [c.center(w) for c, w in zip(row[1:], widths[1:], strict=True)]
                bar = " " if k == 0 else "|"
                inside = f" {bar} ".join(cells)
                if k > 0 or inside.strip():
                    lines.append(f"{row[0].rjust(widths[0])} {bar} {inside} {bar}".rstrip())
                lines.append(edge)
            if tall:
                lines.append("...")
        return "\n".join(lines)

    __repr__ = __str__

    def _title(self):
        size = "x".join(map(str, self.shape)) or "a scalar"
        spec = getattr(self.sharding, "spec", None)
        named = f" as {spec}" if spec is not None else ""
        return f"{size}{named}: devices of each block"

    def _repr_html_(self):
        out = [f"<p>{html.escape(self._title())}</p>"]
        colours: dict[str, str] = {}
        cell_style = "border:1px solid #888;padding:4px 10px;text-align:center;color:#000;"
        for heading, labels, body, _ in self._sheets():
            if heading:
                out.append(f"<p>{html.escape(heading)}</p>")
            if not labels:
                continue
            head = "".join(f"<th>{html.escape(x)}</th>" for x in ["", *labels])
            out.append(f'<table style="border-collapse:collapse"><tr>{head}</tr>')
            for label, cells in body:
                drawn = ""
                for cell in cells:
                    colour = colours.setdefault(cell, _COLOURS[len(colours) % len(_COLOURS)])
                    style = f"{cell_style}background:{colour}"
                    drawn += f'<td style="{style}">{html.escape(cell)}</td>'
                out.append(f"<tr><th>{html.escape(label)}</th>{drawn}</tr>")
            out.append("</table>")
        return "".join(out)


def _of_sheet(intervals):
    return f"[{', '.join([*intervals, ':', ':'])}]" if intervals else ""


def _named_blocks(sharding, shape):
    mesh, spec = sharding.mesh, tuple(sharding.spec)
    if len(spec) > len(shape):
        raise ValueError(
            f"draw: {sharding.spec} has {len(spec)} entries for {len(shape)} dimensions"
        )
    names = list(mesh.axis_names)
    axes = [() if e is None else e if isinstance(e, tuple) else (e,) for e in spec]
    axes += [()] * (len(shape) - len(axes))
    counts = [int(np.prod([mesh.shape[a] for a in of], initial=1)) for of in axes]
    grid = np.arange(mesh.size).reshape([mesh.shape[n] for n in names])
    ids = np.asarray(mesh.device_ids) if isinstance(mesh, Mesh) else grid
    devices: dict[tuple, list[int]] = {}
    for place in np.ndindex(grid.shape):
        block = []
        for of in axes:
            number = 0
            for a in of:
                number = number * mesh.shape[a] + place[names.index(a)]
            block.append(number)
        devices.setdefault(tuple(block), []).append(int(ids[place]))
    sizes = [-(-n // c) for n, c in zip(shape, counts, strict=True)]
    return counts, sizes, devices


def _indexed_blocks(sharding, shape):
    counts, sizes = [1] * len(shape), list(shape)
    indices = sharding.devices_indices_map(shape)
    starts = [sorted({i[d].indices(n)[0] for i in indices.values()}) for d, n in enumerate(shape)]
    devices: dict[tuple, list[int]] = {}
    for device, index in indices.items():
        block = tuple(starts[d].index(index[d].indices(n)[0]) for d, n in enumerate(shape))
        devices.setdefault(block, []).append(device.id)
    for d, of_dim in enumerate(starts):
        counts[d] = len(of_dim)
        sizes[d] = of_dim[1] if len(of_dim) > 1 else shape[d]
    return counts, sizes, devices


def _interval(dim, number, sizes, shape):
    start = min(number * sizes[dim], shape[dim])
    return f"{start}:{min(start + sizes[dim], shape[dim])}"


def _listed(ids):
    """0-3,6 for [0, 1, 2, 3, 6]."""
    out: list[str] = []
    ids = sorted(ids)
    for _, run in itertools.groupby(enumerate(ids), lambda e: e[1] - e[0]):
        numbers = [n for _, n in run]
        out.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(out)
