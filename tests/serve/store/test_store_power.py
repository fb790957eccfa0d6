"""Machines that lose power: a commit that was told to be durable is."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from places import KilledError, MortalPlace
from test_store_commits import check_files, commit

from headrace.serve.store.places import LocalPlace
from headrace.serve.store.saving import Saver
from seeds import examples


class Disk:
    """What is on the disk for sure: files and folders as they were when they were last synced."""

    def __init__(self, monkeypatch) -> None:
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, int]] = {}
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, file: int) -> None:
        status, path = os.fstat(file), os.readlink(f"/proc/self/fd/{file}")
        if stat.S_ISDIR(status.st_mode):
            self.folders[status.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self.files[status.st_ino] = Path(path).read_bytes()

    def lost(self, now: Path, then: Path, random: Random) -> None:
        """What may be found then: of what was not synced anything, of what was removed perhaps all."""
        then.mkdir()
        synced = self.folders.get(now.stat().st_ino, {})
        there = {path.name: path for path in now.iterdir()}
        for name in there.keys() | synced.keys():
            path = there.get(name)
            if path is None:
                if random.random() < 0.5:
                    (then / name).write_bytes(self.files[synced[name]])
            elif name in synced or random.random() < 0.5:
                self._lost_one(path, then / name, random)

    def _lost_one(self, now: Path, then: Path, random: Random) -> None:
        if now.is_dir():
            self.lost(now, then, random)
            return
        synced, data = self.files.get(now.stat().st_ino, b""), now.read_bytes()
        size = random.randint(len(synced), len(data))
        kept = random.randint(len(synced), size)
        then.write_bytes(data[:kept] + bytes(size - kept))


def test_what_was_committed_survives_the_machine(tmp_path):
    """The power goes between any two commits, or in the middle of one; what was being done is there as a whole or not at all."""
    in_the_middle = went_on = 0
    for seed in range(examples(60, 10)):
        random, now, then = Random(seed), tmp_path / f"now{seed}", tmp_path / f"then{seed}"
        now.mkdir()
        durable = offset = 0
        with pytest.MonkeyPatch.context() as monkeypatch:
            disk = Disk(monkeypatch)
            place = MortalPlace(LocalPlace(str(now / "topic" / "0")), random, [random.randrange(1, 30)])
            with suppress(KilledError):
                saver = Saver(place, 1)
                for number in range(6):
                    known = [number for _, number in saver.manifest.locations()]
                    offset += 3
                    commit(saver, offset, (number,), tuple(c for c in known if random.random() < 0.3))
                    durable = offset
        disk.lost(now, then, random)
        heir_of = LocalPlace(str(then / "topic" / "0"))
        heir = Saver(heir_of, 2)
        check_files(heir_of, heir)
        assert heir.manifest.offset in (durable, offset), seed
        in_the_middle += durable < offset
        went_on += heir.manifest.offset > 0
    assert min(in_the_middle, went_on) > 20
