# SPDX-License-Identifier: GPL-2.0-only
"""How far the tests are: the table at the end, and the time that is left."""

import statistics
from collections.abc import Mapping, Sequence

from tests.lanefs.torture.plan import Slice
from tests.lanefs.torture.state import Record


def left(planned: Sequence[Slice], done: Mapping[str, Record]) -> float:
    """Seconds that the slices which have not passed will take: as those of their part took, or as
    the plan guesses."""
    took: dict[str, list[float]] = {}
    for piece in planned:
        if piece.id in done:
            took.setdefault(piece.part.name, []).append(done[piece.id].seconds)
    return sum(
        statistics.fmean(took.get(piece.part.name, [piece.part.seconds]))
        for piece in planned
        if not (piece.id in done and done[piece.id].ok)
    )


def render(planned: Sequence[Slice], done: Mapping[str, Record], source: str) -> str:
    """A row for each kernel and part: units that passed of all, slices that failed, minutes."""
    rows = [("Kernel", "Part", "Passed", "Of", "Unit", "Failed", "Minutes")]
    groups: dict[tuple[str, str], list[Slice]] = {}
    for piece in planned:
        groups.setdefault((piece.boot.name, piece.part.name), []).append(piece)
    for (kernel, part), pieces in sorted(groups.items()):
        records = [(piece, done[piece.id]) for piece in pieces if piece.id in done]
        passed = sum(piece.amount for piece, record in records if record.ok)
        failed = [str(piece.number) for piece, record in records if not record.ok]
        total = sum(piece.amount for piece in pieces)
        minutes = sum(record.seconds for _, record in records) / 60
        rows.append(
            (
                *(kernel, part, f"{passed:,}", f"{total:,}", pieces[0].part.unit),
                *(", ".join(failed) or "-", f"{minutes:.1f}"),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numbers = {2, 3, 6}
    lines = [
        "  ".join(
            text.rjust(width) if column in numbers else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([f"lanefs sources {source}", *lines])
