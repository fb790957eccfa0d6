"""Mutated scripts are accepted, or refused with a place; nothing else ever comes out of the parser."""

from __future__ import annotations

import os
import random
import re

import pytest
from sql_golden import PRELUDE, load

from headrace.sql import SqlError, parse_script

SEED = int(os.environ.get("HEADRACE_FUZZ_SEED", "2024"))
ROUNDS = int(os.environ.get("HEADRACE_FUZZ_ROUNDS", "1500"))
GOOD = [sql for sql, _ in load("plans.txt")]
PIECES = re.compile(r"\s+|\w+|'[^']*'|.", re.S)
WORDS = [
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "EMIT", "FINAL", "INTO", "[", "]", "(", ")", ",", ";", "'", "`",
    "/*", "--\n", "*", "OVER", "RANGE", "ROWS", "5 MINUTES", "card", "payments", "SUM", "COUNT(*)", "1", "NULL",
    "CASE", "END", "AS", "DELAY", "0", "=>", ".", "->", "@x", "IN", "BETWEEN", "AND", "NOT", "INTERVAL", "é", "\x00",
    "\\", "{{", "SHOW", "$$", "99999999999999999999", "1e999", "x'", "r'", "?", ":a", "struct(1)", "MAP<",
    "ARRAY<INT>", "late(", "::", "<=>", "#", "~", "||", "FILTER (WHERE", "PARTITION BY", "\t", "\r\n", "DISTINCT",
    "LIKE", "SIZE", "EVERY", "SLIDE", "PARTITIONED BY", "MERGE", "INSERT INTO", "ON payments", "DROP STREAM", "DESCRIBE", "NOW",
    "DELTA", "SESSION", "LANDMARK", "FIXED", "SYSTEM", "BATCH BY", "WITH (", "profile = 'flink'", "ISTREAM", "DSTREAM", "first.",
    "JOIN", "LEFT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "ON", "USING", "CREATE TABLE",
    "EVENT SEQ(", "SEQ", "EVENT", "!", "!(payments c)", "payments+ b", "+", "ANY MATCH", "NEXT MATCH", "STRICT", "WITHIN",
    "RETURN", "USING KSLACK", "WITH (memory = 100)", "memory", "together = 2",
    "wait = 1 SECOND", "COUNT(b)", "COUNT(b.*)", "b.amount", "LAST(b.at)", "a.*",
    "MATCH_RECOGNIZE (", "MEASURES", "PATTERN (", "DEFINE", "A", "B+", "X*?", "{2}", "AFTER MATCH SKIP TO NEXT ROW", "PREV(",
    "A.amount",
]  # fmt: skip


def mutate(rng: random.Random, sql: str) -> str:
    pieces = PIECES.findall(sql)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(pieces) + 1)
        match rng.randrange(6):
            case 0:
                del pieces[at : at + rng.randint(1, 3)]
            case 1:
                pieces.insert(at, f" {rng.choice(WORDS)} ")
            case 2:
                pieces[at : at + 1] = [rng.choice(WORDS)]
            case 3:
                pieces.insert(at, rng.choice(pieces) if pieces else "x")
            case 4:
                other = rng.randrange(len(pieces) + 1)
                low, high = min(at, other), max(at, other)
                pieces[low:high] = reversed(pieces[low:high])
            case _:
                text = "".join(pieces)
                cut = rng.randrange(len(text) + 1)
                pieces = PIECES.findall(
                    text[:cut] + chr(rng.choice([0, 9, 34, 39, 40, 59, 91, 92, 96, 0x2028, 0x1F600])) + text[cut + 1 :]
                )
    return "".join(pieces)


def outcome(sql: str) -> str:
    try:
        parse_script(sql)
    except SqlError as refused:
        error = refused
    else:
        return "accepted"
    assert 1 <= error.line <= sql.count("\n") + 1
    assert error.column >= 1
    assert "^" in str(error)
    return "refused"


def test_mutated_scripts():
    rng = random.Random(SEED)
    seen = {"accepted": 0, "refused": 0}
    for _ in range(ROUNDS):
        sql = mutate(rng, rng.choice(GOOD))
        sql = PRELUDE + sql if rng.random() < 0.9 else mutate(rng, PRELUDE) + sql
        try:
            seen[outcome(sql)] += 1
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{sql!r}")
    assert min(seen.values()) > ROUNDS // 50, seen


def test_random_text():
    rng = random.Random(SEED)
    for _ in range(ROUNDS // 5):
        sql = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 30)))
        try:
            outcome(sql)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{sql!r}")
