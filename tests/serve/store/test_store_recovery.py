"""Units that die at any moment and go on from their last commit answer as one that never did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from places import KilledError, MortalPlace
from served import Unit, answers, records_of

from headrace.errors import QueryError, StaleError
from headrace.serve.store.ahead import AheadCache
from headrace.serve.store.store import Store
from headrace.testing.local import LocalEngine
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.strategies import Case, arrivals, sampled, scripts, shared_looks, streams
from join_cases import joins
from seeds import FIRST, examples


@st.composite
def windows(draw: st.DrawFn) -> Case:
    stream = draw(streams())
    return Case(draw(scripts(stream, 3)), tuple(draw(arrivals(stream, 40))))


KINDS = {
    "windows": lambda seed: sampled(windows(), seed),
    "looks": lambda seed: sampled(shared_looks(40), seed),
    "joins": lambda seed: sampled(joins(), seed),
    "patterns": seeded_pattern_case,
}


def cases(kind: str, first: int, count: int) -> Iterator[tuple[int, Case]]:
    """So many that are not refused, with their seeds."""
    while count:
        first += 1
        with suppress(QueryError, UnsatisfiedAssumption):
            case = KINDS[kind](first)
            LocalEngine(case.script, 1)
            yield first, case
            count -= 1


@dataclass
class Lives:
    """A partition, and the units that have it one after the other."""

    case: Case
    folder: Path
    random: Random
    reached: Counter[str] = field(default_factory=Counter)
    epoch: int = 0
    stores: list[Store] = field(default_factory=list)

    def run(self) -> None:
        records = records_of(self.case.script, self.case.batches)
        expected = answers(self.case.script, records)
        done = False
        while not done:
            done = self._live(records, expected)
        for store in self.stores:
            store.close()

    def _live(self, records, expected) -> bool:
        """One life: to the end of the log, or until the unit dies. A save that it began may go on after it."""
        random = self.random
        store = Store(str(self.folder), 4)
        life = [random.choice((1, 2, 5, 10, 40, 200))]
        store.place = MortalPlace(store.place, random, life)
        self.stores.append(store)
        self.epoch += random.choice((1, 1, 3))
        with suppress(KilledError):
            unit = Unit(self.case.script, store, self.epoch, records)
            self._count_opened(unit)
            while unit.offset < len(records):
                at = unit.offset
                assert unit.answer(records[at]) == expected[at], f"record {at} in epoch {self.epoch}"
                if random.random() < 0.3:
                    self._save(unit)
                if random.random() < 0.05:
                    self.reached["left alone"] += 1
                    return False
            saving = unit.partition.save(unit.offset)
            if saving is not None:
                self._saved(saving.result())
            self._count_loads(store)
            return True
        self.reached["killed"] += 1
        return False

    def _save(self, unit: Unit) -> None:
        saving = unit.partition.save(unit.offset)
        self.reached["busy"] += saving is None
        if saving is not None and self.random.random() < 0.7:
            self._saved(saving.result())

    def _saved(self, saved) -> None:
        self.reached["saves"] += 1
        self.reached["removed"] += saved.removed
        self.reached["chunks"] += len(saved.chunks)

    def _count_opened(self, unit: Unit) -> None:
        self.reached["restored"] += unit.offset > 0
        self.reached["pages"] += bool(unit.partition._saver.manifest.pages)
        self.reached["increments"] += len(unit.partition._saver.manifest.increments) > 1

    def _count_loads(self, store: Store) -> None:
        assert isinstance(store.cache, AheadCache)
        self.reached["loads"] += store.cache.hits + store.cache.misses


def test_any_script_goes_on_as_if_nobody_had_died(tmp_path):
    reached, few = Counter(), examples(4, 6)
    for kind in KINDS:
        for seed, case in cases(kind, FIRST, few):
            lives = Lives(case, tmp_path / f"{kind}{seed}", Random(seed), reached)
            try:
                lives.run()
            except Exception as error:
                error.add_note(f"{kind}, seed {seed}")
                raise
    for what in ("killed", "left alone", "saves", "removed", "chunks", "restored", "loads", "busy", "pages", "increments"):
        assert reached[what] >= (few if what != "busy" else 1), f"{what}: {reached}"


def test_two_units_fight_over_a_partition(tmp_path):
    """Each believes that it is its own. The later one goes on undisturbed, the other hears of it when it saves."""
    refused = taken = 0
    for seed, case in cases("windows", FIRST + 100, examples(3, 6)):
        random = Random(seed)
        records = records_of(case.script, case.batches)
        expected = answers(case.script, records)
        stores = [Store(str(tmp_path / str(seed)), 4) for _ in range(2)]
        units, epoch = {}, 0
        while True:
            who = random.randrange(2)
            if who not in units:
                epoch += 1
                units[who] = Unit(case.script, stores[who], epoch, records)
                taken += units[who].offset > 0
            unit = units[who]
            if unit.offset == len(records):
                break
            at = unit.offset
            try:
                assert unit.answer(records[at]) == expected[at], f"record {at}, seed {seed}"
                if random.random() < 0.4:
                    saving = unit.partition.save(unit.offset)
                    assert saving is not None
                    saving.result()
                    assert unit.partition.epoch == epoch, "only the newest is let through"
            except StaleError:
                refused += 1
                assert unit.partition.epoch < epoch
                del units[who]
        for store in stores:
            store.close()
    assert refused > 5
    assert taken > 5
