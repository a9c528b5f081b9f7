# SPDX-License-Identifier: GPL-2.0-only
"""Writes `ab.json` beside `run.json`: the two sides, and when the data were looked at."""

from dataclasses import dataclass, replace

from pydantic import ValidationError

from fscale.analysis.compare.sequential import ended
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import AbRecord
from fscale.model.store import AB_FILE, Store


@dataclass(frozen=True)
class Looks:
    """The numbers of repetitions per side, or of pairs in slices, after which to look at the data.

    Both are empty if the number of repetitions is fixed.
    """

    whole: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()

    def of(self, *, sliced: bool) -> tuple[int, ...]:
        """The looks at a point, by the way in which it is measured."""
        return self.pairs if sliced else self.whole

    def ended(self, last: int, *, sliced: bool) -> "Looks":
        """The looks of a run whose time limit came after `last` repetitions (or pairs)."""
        looks = ended(self.of(sliced=sliced), last)
        return replace(self, pairs=looks) if sliced else replace(self, whole=looks)


def save(store: Store, base: str, new: str, looks: Looks, settings: Settings) -> None:
    """Write ab.json; `base` and `new` are the sides as the user named them."""
    record = AbRecord(
        base=base,
        new=new,
        looks=list(looks.whole),
        pair_looks=list(looks.pairs),
        settings=settings,
    )
    store.save(AB_FILE, record.model_dump_json(by_alias=True, indent=1) + "\n")


def stored_looks(store: Store) -> Looks:
    """The looks of a run to resume; the last of each may have come at its time limit."""
    try:
        text = (store.directory / AB_FILE).read_text()
        record = AbRecord.model_validate_json(text)
        return Looks(tuple(record.looks), tuple(record.pair_looks))
    except (OSError, ValidationError):
        return Looks()
