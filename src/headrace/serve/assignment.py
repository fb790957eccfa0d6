"""Which unit has which partition: evenly, and as it was before as far as that goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.log.log import At


@dataclass(frozen=True, slots=True)
class Held:
    """A partition, by whom, and under which epoch: every time it goes to somebody, it gets a higher one."""

    unit: int
    epoch: int


@dataclass(slots=True)
class Assignment:
    """All partitions of a deployment."""

    partitions: Sequence[At]
    held: dict[At, Held] = field(default_factory=dict)
    epochs: dict[At, int] = field(default_factory=dict)

    def give(self, units: Collection[int]) -> set[int]:
        """Share the partitions out among these units. Which of them have others now than before."""
        before = dict(self.held)
        self.held = {at: held for at, held in self.held.items() if held.unit in units}
        if units:
            self._let_go(units)
            self._fill(units)
        return {h.unit for h in _differing(before, self.held) if h.unit in units}

    def of(self, unit: int) -> dict[At, int]:
        """The partitions of a unit, with their epochs."""
        return {at: held.epoch for at, held in self.held.items() if held.unit == unit}

    def _let_go(self, units: Collection[int]) -> None:
        """Units that have more than their share lose what they have too much, the last of it."""
        most, extra = divmod(len(self.partitions), len(units))
        for unit in sorted(units, key=lambda u: (-len(self.of(u)), u)):
            mine = list(self.of(unit))
            share = most + (1 if extra > 0 and len(mine) > most else 0)
            extra -= share > most
            for at in mine[share:]:
                del self.held[at]

    def _fill(self, units: Collection[int]) -> None:
        for at in self.partitions:
            if at not in self.held:
                least = min(units, key=lambda u: (len(self.of(u)), u))
                self.epochs[at] = self.epochs.get(at, 0) + 1
                self.held[at] = Held(least, self.epochs[at])


def _differing(before: Mapping[At, Held], after: Mapping[At, Held]) -> set[Held]:
    """Everything that is held in one of them only."""
    return {held for _, held in before.items() ^ after.items()}
