"""How what was said of an event is told apart into its own and that of earlier ones."""

from __future__ import annotations

import json
from random import Random

from http_world import SCRIPT

from headrace.changes.keys import SOURCE_BITS
from headrace.serve.deployment import deploy
from headrace.serve.http.answers import SIGN, Answers
from headrace.serve.http.texts import texts_of
from headrace.serve.records import Said
from headrace.sql import parse_script

FRONT = 3
DEPLOYMENT = deploy(parse_script(SCRIPT))
ANSWERS = Answers(DEPLOYMENT, FRONT, texts_of(DEPLOYMENT).writes)
QUERIES = ANSWERS.names
ROWS = {"card_profile": [7, "a", 1.5, 2], "shop": [7, "x", 1.5], "jumps": [6, 7]}


def key(*events: tuple[int, int], ts: int = 0) -> list[int]:
    """Of a row that stands at the first of these events (place, front) and is made of the others as well."""
    (place, front), *others = events
    words = [n + SIGN for p, f in others for n in (ts, (1 << SOURCE_BITS) + f, p)]
    return [ts, (2 << SOURCE_BITS) + front, place, *words]


def said(query: str, sign: int, *events: tuple[int, int]) -> Said:
    return Said(QUERIES.index(query), sign, key(*events), ROWS[query])


def told(*some: Said, place: int = 9):
    found = json.loads(ANSWERS.answered(0, place, some))
    assert found["place"] == f"{FRONT}-{place}"
    return found["answers"], [(c["query"], c["op"], c["place"]) for c in found["earlier"]]


def test_every_query_over_the_stream_is_there():
    assert told() == ({"card_profile": None, "shop": None, "jumps": []}, [])


def test_its_own_rows_are_by_query_and_those_of_others_apart():
    answers, earlier = told(
        said("shop", -1, (4, FRONT)), said("shop", 1, (4, FRONT)), said("shop", 1, (9, FRONT)), said("card_profile", 1, (9, 1))
    )
    assert answers["shop"] == {"id": 7, "merchant": "x", "mean": 1.5}
    assert answers["card_profile"] is None
    assert earlier == [("shop", "-", "3-4"), ("shop", "+", "3-4"), ("card_profile", "+", "1-9")]


def test_what_it_makes_with_others_is_its_own_wherever_it_stands():
    answers, earlier = told(said("jumps", 1, (9, FRONT), (4, FRONT)), said("jumps", 1, (8, FRONT), (9, FRONT)))
    assert answers["jumps"] == [{"small": 6, "large": 7}] * 2
    assert earlier == []


def test_what_others_have_made_is_apart():
    answers, earlier = told(said("jumps", 1, (8, FRONT), (9, 1)), said("jumps", -1, (8, FRONT), (4, FRONT)))
    assert answers["jumps"] == []
    assert earlier == [("jumps", "+", "3-8"), ("jumps", "-", "3-8")]


def test_nothing_that_was_said_is_lost_and_nothing_said_twice():
    rng = Random(0)
    for _ in range(300):
        some = []
        for _ in range(rng.randrange(8)):
            query = rng.choice(QUERIES)
            events = [(rng.randrange(7, 11), rng.choice((1, FRONT))) for _ in range(2 if query == "jumps" else 1)]
            some.append(said(query, rng.choice((1, -1)), *events))
        if len({(one.query, *one.key) for one in some}) < len(some):
            continue
        answers, earlier = told(*some)
        own = sum(len(a) if isinstance(a, list) else a is not None for a in answers.values())
        assert own + len(earlier) == len(some)
        assert all(op == "-" for query, op, place in earlier if query != "jumps" and place == "3-9")
