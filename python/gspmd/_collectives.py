"""The table of collectives of a partitioned program."""

import dataclasses
import html


@dataclasses.dataclass(frozen=True)
class Collective:
    """Collectives of one kind that one line of the model caused for one reason, per device."""

    kind: str  # HLO's name: "all-gather"
    count: int  # instructions
    runs: float  # executions, loops counted
    bytes: float  # of the operands, in all runs
    wire_bytes: float  # sent by each device on a ring
    place: str  # "model.py:12"; empty where unknown
    op_name: str  # of the operator that caused it, as JAX names it
    reasons: str  # "partial-reduction", ...


class Collectives(list):
    """A list of `Collective`, the largest first; prints as a table."""

    @property
    def total_bytes(self) -> float:
        """Bytes of all operands, per device."""
        return sum(c.bytes for c in self)

    @property
    def wire_bytes(self) -> float:
        """Bytes that each device sends."""
        return sum(c.wire_bytes for c in self)

    def counts(self) -> dict[str, int]:
        """How many instructions of each kind."""
        out: dict[str, int] = {}
        for c in self:
            out[c.kind] = out.get(c.kind, 0) + c.count
        return out

    def _rows(self):
        yield ("kind", "count", "runs", "bytes", "wire bytes", "why", "where")
        for c in self:
            where = " ".join(filter(None, (c.place, c.op_name)))
            numbers = (f"{c.count}", f"{c.runs:g}", f"{c.bytes:,.0f}", f"{c.wire_bytes:,.0f}")
            yield (c.kind, *numbers, c.reasons, where)

    def __str__(self):
        if not self:
            return "no collectives"
        rows = list(self._rows())
        widths = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
        lines = []
        for row in rows:
            cells = [
                c.rjust(w) if 0 < k < 5 else c.ljust(w)
                for k, (c, w) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        if not self:
            return "<p>no collectives</p>"
        head, *rows = self._rows()

        def line(cells, tag):
            sides = ["right" if 0 < k < 5 else "left" for k in range(len(cells))]
            return "".join(
                f'<{tag} style="text-align:{side};padding:2px 8px">{html.escape(c)}</{tag}>'
                for c, side in zip(cells, sides, strict=True)
            )

        body = "".join(f"<tr>{line(r, 'td')}</tr>" for r in rows)
        return f"<table><tr>{line(head, 'th')}</tr>{body}</table>"
