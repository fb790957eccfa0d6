"""Chunks that were let go are made again, to the byte, from files that rotation has renamed, copied or compressed meanwhile."""

from __future__ import annotations

import gzip
from random import Random

import pytest
from test_following import HEADER, Disk, Logs

from headrace.files.chunks import Chunk
from headrace.files.ledger import noted_files
from headrace.files.restored import look_for, restored


def spooled(logs: Logs, rng: Random) -> dict[str, bytes]:
    """Chunks of two files, small ones and large ones, with a header and without."""
    out: dict[str, bytes] = {}
    for _ in range(12):
        name = rng.choice(("a.csv", "b.csv"))
        there = (logs.root / "logs" / name).exists()
        rows = b"".join(b"%d,%d\n" % (rng.randint(0, 9), rng.randint(0, 10**9)) for _ in range(rng.choice((1, 3, 40))))
        logs.append(name, (b"" if there or name == "b.csv" else HEADER) + rows)
        out |= {chunk.name: data for chunk, data in logs.step()}
    return out


def again(logs: Logs, chunks: dict[str, bytes], gone: list[str]) -> dict[str, bytes | None]:
    """What can be had again of some chunks, by their names; None: that no file holds."""
    every = [chunk for chunk in map(Chunk.parse, chunks) if chunk is not None]
    first = {seen: min(c.offset for c in every if c.seen == seen) for seen in {c.seen for c in every}}
    files, there = noted_files(Disk(), str(logs.root / "spool")), [str(p) for p in sorted((logs.root / "logs").iterdir())]
    out: dict[str, bytes | None] = {}
    for found in look_for([c for c in every if c.name in gone], first, files, there):
        some = [(chunk, None) for chunk in found.chunks] if found.path is None else restored(found)
        out |= {chunk.name: data for chunk, data in some}
    return out


@pytest.mark.parametrize("seed", range(6))
def test_chunks_are_made_again_wherever_their_file_is(tmp_path, seed):
    rng, logs = Random(seed), Logs(tmp_path)
    chunks = spooled(logs, rng)
    gone = rng.sample(sorted(chunks), rng.randint(1, len(chunks)))
    logs.follower.ledger.forget(gone)
    assert again(logs, chunks, gone) == {name: chunks[name] for name in gone}
    a, b = (logs.root / "logs" / name for name in ("a.csv", "b.csv"))
    if a.exists():
        (logs.root / "logs" / "a.csv.1.gz").write_bytes(gzip.compress(a.read_bytes()))  # copied, compressed, and cut short
        a.write_bytes(HEADER)
    if b.exists():
        b.rename(logs.root / "logs" / "b-2026.csv")
    assert again(logs, chunks, gone) == {name: chunks[name] for name in gone}


def test_what_no_file_holds_is_not_made_up(tmp_path):
    logs = Logs(tmp_path)
    rows = b"".join(b"%d,x\n" % n for n in range(200))
    chunks = {}
    for part in (HEADER + rows, rows, rows):
        logs.append("a.csv", part)
        chunks |= {chunk.name: data for chunk, data in logs.step()}
    first, second, third = sorted(chunks)
    logs.follower.ledger.forget([first, second, third])
    file = logs.root / "logs" / "a.csv"
    data = file.read_bytes()
    file.write_bytes(data[: len(HEADER + rows + rows)])  # cut short
    assert again(logs, chunks, [first, second]) == {first: chunks[first], second: chunks[second]}
    assert again(logs, chunks, [first, second, third]) == dict.fromkeys((first, second, third))
    changed = bytearray(data)
    changed[len(HEADER + rows) - 3] ^= 1  # at the end of the first chunk
    file.write_bytes(bytes(changed))
    assert again(logs, chunks, [first, second]) == {first: None, second: chunks[second]}
    file.unlink()
    assert again(logs, chunks, [second]) == {second: None}
