"""What comes back for an event, by every way it may be posted."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_world import PAYMENTS, clock, payment

from headrace.errors import InUseError, SystemFailure
from headrace.log.files import FileLog
from headrace.serve.front import Front
from headrace.serve.http.server import HttpServer


def test_one_reply_has_all_metrics_of_all_entities(world):
    w = world()
    assert w.post(payment(1, "a", 10.0, 0, "x")) == (
        200,
        {
            "place": "0-1",
            "answers": {
                "card_profile": {"id": 1, "card": "a", "total": 10.0, "n": 1},
                "shop": {"id": 1, "merchant": "x", "mean": 10.0},
                "jumps": [],
            },
            "earlier": [],
        },
    )
    status, reply = w.post(payment(2, "a", 200.0, 30, "y"))
    assert status == 200
    assert reply["answers"] == {
        "card_profile": {"id": 2, "card": "a", "total": 210.0, "n": 2},
        "shop": {"id": 2, "merchant": "y", "mean": 200.0},
        "jumps": [{"small": 1, "large": 2}],
    }


def test_what_an_event_changes_of_earlier_ones_stands_apart(world):
    w = world()
    first = w.post(payment(1, "a", 10.0, 20))[1]
    status, reply = w.post(payment(2, "a", 5.0, 15))
    assert status == 200
    assert reply["answers"]["card_profile"] == {"id": 2, "card": "a", "total": 5.0, "n": 1}
    changed = [(c["query"], c["op"], c["place"], c["time"], c["row"]) for c in reply["earlier"] if c["query"] == "card_profile"]
    row = {"id": 1, "card": "a", "total": 10.0, "n": 1}
    assert changed == [
        ("card_profile", "-", first["place"], clock(20), row),
        ("card_profile", "+", first["place"], clock(20), row | {"total": 15.0, "n": 2}),
    ]


def test_a_match_that_an_event_in_the_past_makes_is_its_own(world):
    w = world()
    w.post(payment(1, "a", 200.0, 20))
    assert w.post(payment(2, "a", 1.0, 15))[1]["answers"]["jumps"] == [{"small": 2, "large": 1}]


def test_a_late_event_is_told_how_late_it_is(world):
    w = world()
    w.post(payment(1, at=60))
    status, reply = w.post(payment(2, at=20))
    assert status == 200
    late = reply["late"]
    assert (late["time"], late["complete_before"], late["by_seconds"]) == (clock(20), clock(50), 30.0)
    assert "30 seconds behind" in late["message"]
    assert w.metric('headrace_late_total{stream="payments"}') == 1


def test_an_event_that_does_not_fit_is_told_why(world):
    w = world()
    status, reply = w.post(payment(1) | {"amount": "much"})
    assert status == 422
    assert reply["rejected"]["reason"] == "column 'amount' is DOUBLE, and here is \"much\""
    assert w.post(["no event"])[1][0]["rejected"]["reason"] == "it is not a JSON object"
    assert w.metric('headrace_rejected_total{stream="payments"}') == 2


def test_punctuation_is_confirmed(world):
    w = world(
        script="""CREATE STREAM payments (id BIGINT, card STRING, at TIMESTAMP, done TIMESTAMP)
        SOURCE FILE('payments.csv') TIMESTAMP BY at PUNCTUATED BY done;
        SELECT id, COUNT(*) AS n FROM payments [RANGE 1 MINUTE] GROUP BY card INTO counts;"""
    )
    assert w.post({"id": 1, "card": "a", "at": clock(5)})[1]["answers"] == {"counts": {"id": 1, "n": 1}}
    status, reply = w.post({"done": clock(9)})
    assert (status, reply["promised"]) == (200, clock(9))
    assert "late" in w.post({"id": 2, "card": "a", "at": clock(5)})[1]


@pytest.mark.parametrize("on_thread", [False, True])
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_a_batch_is_answered_event_by_event_in_order(world, kind, on_thread):
    w = world(post_on_thread=on_thread)
    events = [payment(n, at=n) for n in range(40)] + [{"id": "x"}]
    text = json.dumps(events) if kind.endswith("/json") else "\n\n".join(map(json.dumps, events))
    status, replies = w.post(text.encode(), headers={"Content-Type": kind})
    assert status == 200
    assert [r["answers"]["card_profile"]["n"] for r in replies[:-1]] == list(range(1, 41))
    assert [int(r["place"].split("-")[1]) for r in replies[:-1]] == list(range(1, 41))
    assert "column 'id'" in replies[-1]["rejected"]["reason"]


def test_a_post_that_is_tried_again_finds_its_first_answer(world):
    w = world()
    first = w.post(payment(1), headers={"Idempotency-Key": "one"})
    assert first == w.post(payment(1), path=f"{PAYMENTS}?id=one")
    batch = [payment(2, at=1), payment(3, at=2)]
    assert w.post(batch, headers={"Idempotency-Key": "b"}) == w.post(batch, headers={"Idempotency-Key": "b"})
    assert w.post(payment(4, at=3))[1]["answers"]["card_profile"]["n"] == 4
    assert w.post(payment(5, at=4), path=f"{PAYMENTS}?id=b.0")[1]["answers"]["card_profile"]["n"] == 5
    assert w.post(payment(5, at=4), path=f"{PAYMENTS}?id=b%0A0")[0] == 400
    assert w.metric('headrace_events_total{stream="payments"}') == 5


def test_an_answer_that_does_not_come_in_time_is_accepted_all_the_same(world):
    w = world(units=0, answer_s=0.1)
    status, reply = w.post(payment(1), headers={"Idempotency-Key": "slow"})
    assert status == 504
    assert (reply["accepted"], reply["place"]) == (True, "0-1")
    assert w.metric("headrace_unanswered") == 1
    w.add_unit()
    until = time.monotonic() + 5
    while (got := w.post(payment(1), headers={"Idempotency-Key": "slow"}))[0] == 504 and time.monotonic() < until:
        pass
    assert got[0] == 200
    assert (got[1]["place"], got[1]["answers"]["card_profile"]["n"]) == ("0-1", 1)


def test_after_a_front_end_has_died_its_successor_knows_the_ids(world):
    w = world()
    first = w.post(payment(1), headers={"Idempotency-Key": "one"})
    w.restart()
    assert w.post(payment(1), headers={"Idempotency-Key": "one"}) == first


def test_a_port_that_is_taken_is_said_to_be_and_nothing_is_begun(world):
    w = world(units=0)
    before = threading.active_count()
    with pytest.raises(SystemFailure, match=f"port {w.options.port}"):
        HttpServer(w.front, w.options).start()
    assert threading.active_count() <= before
    assert w.ask("GET", "/health")[0] == 200


def test_metrics_count_what_was_answered(world):
    w = world()
    for n in range(5):
        w.post(payment(n, at=n))
    assert w.metric('headrace_reply_seconds_count{stream="payments"}') == 5
    for topic in w.deployment.topics:
        end = time.monotonic() + 5  # a reply may be there before the loop has heard of all that it is made of
        while w.metric(f'headrace_answer_seconds_bucket{{topic="{topic.name}",le="+Inf"}}') != 5:
            assert time.monotonic() < end
    assert w.metric('headrace_requests_total{status="200"}') >= 5
    assert w.metric("headrace_in_flight") == 0
    assert w.metric("headrace_unanswered") == 0


def test_pages_say_what_there_is(world):
    w = world()
    for path in ("/", "/docs"):
        status, headers, text = w.ask("GET", path)
        assert status == 200
        assert headers["Content-Type"].startswith("text/html")
        assert b"payments" in text
    spec = w.ask("GET", "/openapi.json")[2]
    post = spec["paths"][PAYMENTS]["post"]
    assert {"200", "401", "413", "422", "429", "504"} <= post["responses"].keys()
    answered = post["responses"]["200"]["content"]["application/json"]["schema"]["oneOf"][0]
    assert answered["properties"]["answers"]["properties"].keys() == {"card_profile", "shop", "jumps"}


def test_readiness_says_what_is_waited_for(world):
    w = world()
    assert w.ask("GET", "/health")[0] == 200
    assert w.ask("GET", "/ready")[::2] == (200, {"ready": True, "waits_for": []})
    w.waits.append("unit 1 of 2")
    assert w.ask("GET", "/ready")[::2] == (503, {"ready": False, "waits_for": ["unit 1 of 2"]})


def test_who_waits_when_a_front_end_ends_has_an_answer_or_a_word(world):
    """One is answered in the time that is left; for the other there is nobody who could answer."""
    w = world(units=0, grace_s=3.0, answer_s=30.0)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(w.post, payment(1))
        while not w.front.unanswered():
            time.sleep(0.01)
        ending = pool.submit(w.server.stop)
        w.add_unit()
        assert waiting.result()[1]["answers"]["card_profile"]["n"] == 1
        ending.result()


def test_who_waits_in_vain_is_told_that_his_event_counts(world):
    w = world(units=0, grace_s=0.1, answer_s=30.0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(w.post, payment(1))
        while not w.front.unanswered():
            time.sleep(0.01)
        w.server.stop()
        status, reply = waiting.result()
    assert (status, reply["accepted"]) == (504, True)


@pytest.mark.parametrize("on_thread", [False, True])
def test_a_front_end_whose_name_was_taken_says_so_and_ends(world, on_thread):
    w = world(post_on_thread=on_thread)
    Front(w.deployment, FileLog(w.folder), 0, lambda: 0)
    assert w.post(payment(1))[0] == 503
    with pytest.raises(InUseError, match="taken over"):
        w.server.wait(5)
