"""Commits of a partition: what counts, who is refused, what is torn, what is damaged, and what is removed when."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from places import MemoryPlace
from pyarrow import fs

from headrace.errors import StaleError, StateError, SystemFailure
from headrace.runtime.increments import STEPS, Increment, Lap, Pages, Piece
from headrace.serve.store.commits import newest
from headrace.serve.store.manifest import Key
from headrace.serve.store.partition import Files
from headrace.serve.store.places import ArrowPlace, LocalPlace, Place, place_of
from headrace.serve.store.saving import Saved, Saver, Taken
from headrace.serve.store.sealed import HEAD_BYTES, Named, seal, unseal
from headrace.state.chunk import Chunk
from seeds import examples


def chunk(number: int) -> Chunk:
    return Chunk(np.arange(number, number + 5), [np.arange(5)])


def commit(saver: Saver, offset: int, chunks: tuple[int, ...] = (), dropped: tuple[int, ...] = (), before=lambda: None) -> Saved:
    step = saver.manifest.increments[-1].step if saver.manifest.increments else 0
    increment = Increment({"offset": offset}, [Piece(0, slice(0, 3), {"x": np.arange(3)})], Pages())
    put: dict[Key, Chunk] = {(0, number): chunk(number) for number in chunks}
    gone = [(0, number) for number in dropped]
    return saver.write(Taken(offset, [increment], [Lap(step + 1, (3,))], put, gone, before))


def check_files(place: Place, saver: Saver) -> None:
    """All that the newest commit of an owner needs can be read."""
    files = Files(place, saver.epoch)
    for increment in saver.manifest.increments:
        assert files.state(increment.file)["0.0.numbers"].tolist() == [0, 1, 2]
    for (_, number), where in saver.manifest.locations().items():
        assert Chunk.read(files.blob(where), "chunk").ts[0] == number


@pytest.fixture(params=["local", "arrow"])
def place(request, tmp_path) -> Place:
    return LocalPlace(str(tmp_path / "a")) if request.param == "local" else ArrowPlace(fs.LocalFileSystem(), str(tmp_path / "a"))


def test_who_opens_goes_on_from_the_newest_commit(place):
    first = Saver(place, 1)
    assert first.manifest.offset == 0
    assert commit(first, 7, (1, 2)).offset == 7
    commit(first, 9, (3,), (1,))
    second = Saver(place, 2)
    assert second.manifest.offset == 9
    assert sorted(second.manifest.locations()) == [(0, 2), (0, 3)]
    check_files(place, second)
    commit(second, 12, (), (2, 3))
    assert Saver(place, 2).manifest.offset == 12  # the same unit, once more


def test_a_stale_unit_is_refused_and_its_last_commit_is_only_old(place):
    first = Saver(place, 1)
    commit(first, 5)
    second, there = Saver(place, 4), place.below("data").names()
    with pytest.raises(StaleError, match=r"in epoch 1, and another in epoch 4"):
        commit(first, 6)
    assert place.below("data").names() == there, "he finds out before he writes"
    with pytest.raises(StaleError):
        commit(first, 7)
    with pytest.raises(StaleError):
        Saver(place, 3)
    commit(second, 8)
    assert Saver(place, 5).manifest.offset == 8


def test_a_commit_that_slips_in_beside_a_claim_removes_nothing(place):
    first = Saver(place, 1)
    commit(first, 5, (1,))
    claimed = []
    with pytest.raises(StaleError):  # he learns of it when he has written
        commit(first, 6, (2,), (1,), before=lambda: claimed.append(Saver(place, 2)))
    assert claimed[0].manifest.offset == 5
    check_files(place, claimed[0])
    assert newest(place.below("commits"))[0].epoch == 2
    commit(claimed[0], 6, (9,))
    assert sorted(named.epoch for named in map(Named.of, place.below("commits").names()) if named) == [2]


def test_a_lap_of_increments_is_all_that_is_kept(place):
    saver = Saver(place, 1)
    for offset in range(1, 3 * STEPS):
        commit(saver, offset)
    assert len(saver.manifest.increments) == STEPS == len(place.below("data").names())
    assert len(place.below("commits").names()) == 1


def test_what_others_left_is_swept_by_the_first_commit(place):
    data = place.below("data")
    for name in (Named(1, 8, "keys").name, Named(1, 9, "blobs").name, Named(7, 1, "keys").name, "notes.txt"):
        data.put(name, b"left")
    saver = Saver(place, 3)
    commit(saver, 1)
    assert sorted(data.names()) == [Named(3, 1, "keys").name, Named(7, 1, "keys").name, "notes.txt"]


def test_a_failed_save_is_the_last(place):
    saver = Saver(place, 1)
    commit(saver, 5)

    def fails() -> None:
        raise SystemFailure("the log cannot be synced")

    for before in (fails, lambda: None):
        with pytest.raises(SystemFailure, match="the log cannot be synced"):
            commit(saver, 6, before=before)
    assert Saver(place, 2).manifest.offset == 5


# ---- files that are not whole ---------------------------------------------------------------------------------------


def last_commit(place: Place) -> Path:
    return Path(place.path) / "commits" / max(place.below("commits").names())


def test_every_torn_commit_is_none(tmp_path):
    """Cut anywhere, or with noughts from there on."""
    place = LocalPlace(str(tmp_path))
    first = Saver(place, 1)
    commit(first, 5)
    whole, name = last_commit(place).read_bytes(), Named(1, first.number + 1, "commit")
    content = unseal(Named.of(last_commit(place).name), whole, "")
    data = seal(name, bytes(content))
    path = last_commit(place).parent / name.name
    cuts = [*Random(1).sample(range(len(data)), 60), 0, HEAD_BYTES, len(data) - 1]
    for cut in cuts:
        for torn in (data[:cut], data[:cut] + bytes(len(data) - cut)):
            path.write_bytes(torn)
            assert newest(place.below("commits"))[0] == Named(1, first.number, "commit")
    path.write_bytes(data)
    assert newest(place.below("commits"))[0] == name


def test_a_commit_that_is_damaged_is_an_error(tmp_path):
    place = LocalPlace(str(tmp_path))
    commit(Saver(place, 1), 5)
    path = last_commit(place)
    whole = path.read_bytes()
    for at in (0, 9, HEAD_BYTES - 1, HEAD_BYTES + 3, len(whole) - 9):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(StateError, match=r"commit is damaged: its (head|checksum) is not .*\n.*hint: put an intact copy"):
            Saver(place, 2)
    path.write_bytes(whole + b"more")
    with pytest.raises(StateError, match="is damaged"):
        Saver(place, 2)
    path.write_bytes(whole)
    os.rename(path, path.with_name(Named(1, 99, "commit").name))
    with pytest.raises(StateError, match=r"it is another file: that of commit 1 in epoch 1"):
        Saver(place, 2)


def test_files_that_a_commit_needs_are_there_and_whole(tmp_path):
    place = LocalPlace(str(tmp_path))
    saver = Saver(place, 1)
    commit(saver, 5, (1,))
    keys, blobs = (tmp_path / "data" / Named(1, 1, kind).name for kind in ("keys", "blobs"))
    for path in (keys, blobs):
        whole = path.read_bytes()
        path.write_bytes(whole[: HEAD_BYTES + 20])
        with pytest.raises(StateError, match=r"is damaged: (only 60 bytes are left of it|the \d+ bytes from byte \d+ are not)"):
            check_files(place, saver)
        path.write_bytes(whole[: HEAD_BYTES + 20] + bytes([whole[HEAD_BYTES + 20] ^ 4]) + whole[HEAD_BYTES + 21 :])
        with pytest.raises(StateError, match="is damaged"):
            check_files(place, saver)
        path.unlink()
        with pytest.raises(StateError, match=f"{path.name} is gone, and the newest commit needs it"):
            check_files(place, saver)
        path.write_bytes(whole)
    check_files(place, saver)
    Saver(place, 2)
    keys.unlink()
    with pytest.raises(StaleError):  # for him it may be gone
        check_files(place, saver)


def test_a_commit_of_a_later_format_is_refused(tmp_path, monkeypatch):
    place = LocalPlace(str(tmp_path))
    monkeypatch.setattr("headrace.serve.store.sealed.FORMAT", 2)
    commit(Saver(place, 1), 5)
    monkeypatch.undo()
    with pytest.raises(StateError, match="has format 2, and this version knows 1"):
        Saver(place, 2)


def test_places_that_no_file_system_has():
    with pytest.raises(StateError, match=r"the store cannot be at gopher://x/y.*\n.*hint: name a folder"):
        place_of("gopher://x/y")
    assert place_of("file:///tmp/a%20b").path == "/tmp/a b"


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(SystemFailure, match="the store cannot work there"):
        Saver(LocalPlace(str(tmp_path / "a")), 1)


# ---- owners and those who take over, step by step in any order --------------------------------------------------------


class Turns:
    """Lets one of several threads go one step, in an order that a seed gives. Some are stopped for long."""

    def __init__(self, seed: int) -> None:
        self.random, self.ready = Random(seed), threading.Condition()
        self.waiting: set[int] = set()
        self.chosen: int | None = None
        self.living = 0

    def turn(self) -> None:
        me = threading.get_ident()
        with self.ready:
            self.waiting.add(me)
            self.ready.notify_all()
            self.ready.wait_for(lambda: self.chosen == me)
            self.chosen = None
            self.waiting.discard(me)

    def run(self, lives) -> None:
        threads = [threading.Thread(target=self._live, args=(life,)) for life in lives]
        self.living = len(threads)
        for thread in threads:
            thread.start()
        weights: dict[int, float] = {}
        with self.ready:
            while self.living:
                self.ready.wait_for(lambda: self.chosen is None and len(self.waiting) == self.living)
                if self.living:
                    some = sorted(self.waiting)
                    for one in some:
                        weights.setdefault(one, self.random.choice((1, 1, 0.02)))
                    self.chosen = self.random.choices(some, [weights[one] for one in some])[0]
                    self.ready.notify_all()
        for thread in threads:
            thread.join()

    def _live(self, life) -> None:
        try:
            life()
        finally:
            with self.ready:
                self.living -= 1
                self.ready.notify_all()


def test_in_whatever_order_owners_and_heirs_act_nothing_is_lost():
    """Every owner that nobody has followed finds all that its commit needs."""
    reached = Counter()
    for seed in range(examples(150, 4)):
        turns = Turns(seed)
        place = MemoryPlace(turn=turns.turn)
        wrong: list[BaseException] = []

        def live(epoch: int, seed=seed, place=place, turns=turns, wrong=wrong) -> None:
            random = Random(f"{seed} {epoch}")
            for _ in range(random.randrange(1 + 30 * (epoch - 1))):  # it is given to him some time after the others
                turns.turn()
            try:
                saver = Saver(place, epoch)
                check_files(place, saver)
                reached["taken over"] += saver.manifest.offset > 0
                for _ in range(random.randrange(6)):
                    offset = saver.manifest.offset + 1
                    known = [number for _, number in saver.manifest.locations()]
                    gone = tuple(number for number in known if random.random() < 0.4)
                    reached["removed"] += commit(saver, offset, (100 * epoch + offset,), gone).removed
                check_files(place, saver)
            except StaleError:
                reached["refused"] += 1
            except BaseException as error:
                wrong.append(error)

        turns.run([lambda epoch=epoch: live(epoch) for epoch in range(1, 5)])
        assert not wrong, (seed, wrong)
        quiet = MemoryPlace(place.files)
        check_files(quiet, Saver(quiet, 9))
    assert min(reached[what] for what in ("taken over", "removed", "refused")) > 50, reached
