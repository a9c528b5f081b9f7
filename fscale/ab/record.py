# SPDX-License-Identifier: GPL-2.0-only
"""`ab.json` beside `run.json`: what the sides are, and when the data were looked at."""

from dataclasses import dataclass

from pydantic import ValidationError

from analysis.compare.sides import AB_FILE, AbRecord
from fscale.model.store import Store


@dataclass(frozen=True)
class Looks:
    """After how many repetitions a side, or pairs in slices, the data are looked at.

    Both are empty where the number of repetitions is fixed.
    """

    whole: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()

    def of(self, *, sliced: bool) -> tuple[int, ...]:
        """Those of a point, by the way in which it is measured."""
        return self.pairs if sliced else self.whole


def save(store: Store, base: str, new: str, looks: Looks) -> None:
    """Write it; `base` and `new` are the sides as they were asked for."""
    record = AbRecord(base=base, new=new, looks=list(looks.whole), pair_looks=list(looks.pairs))
    store.save(AB_FILE, record.model_dump_json(by_alias=True, indent=1) + "\n")


def looked(store: Store) -> list[int]:
    """The looks at pairs of a run that goes on; it may have looked when its time was spent."""
    try:
        text = (store.directory / AB_FILE).read_text()
        return AbRecord.model_validate_json(text).pair_looks
    except (OSError, ValidationError):
        return []
