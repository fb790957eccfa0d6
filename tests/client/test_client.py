"""The client: every event counts once, whatever happens between."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from http_world import payment

from headrace.client import Answered, AsyncClient, Change, Client, Late, Rejected, ServingError, Unanswered, asynchronous
from headrace.serve.http.options import Limits


def test_a_payment_is_answered(world):
    w = world(tokens={"till": "post"})
    with Client(w.server.url, w.tokens["till"]) as client:
        reply = client.post("payments", payment(1) | {"at": datetime(2026, 1, 1, 12, tzinfo=UTC)})
        assert isinstance(reply, Answered)
        assert reply.answers["card_profile"] == {"id": 1, "card": "a", "total": 10.0, "n": 1}
        client.post("payments", payment(2, at=60))
        late = client.post("payments", payment(3, at=20))
        assert isinstance(late, Late)
        assert late.by_seconds == 30.0


def test_what_does_not_fit_is_an_error_with_the_reason(world):
    w = world()
    with Client(w.server.url) as client:
        with pytest.raises(ServingError, match=r"column .amount. is DOUBLE, and here is true") as error:
            client.post("payments", payment(1) | {"amount": True})
        assert error.value.status == 422
        assert isinstance(error.value.reply, Rejected)
        with pytest.raises(ServingError, match="'nothing' does not exist"):
            client.post("nothing", {})


def test_many_are_answered_in_order_in_as_many_requests_as_it_takes(world, monkeypatch):
    monkeypatch.setattr(asynchronous, "AT_ONCE", 50)
    w = world(limits=Limits(in_flight=50, in_flight_each=50, batch=50))
    events = [payment(n, at=n // 10) for n in range(120)]
    events[7]["id"] = "x"
    with Client(w.server.url) as client:
        replies = client.post_many("payments", events, id="all")
        assert isinstance(replies[7], Rejected)
        answered = [r for r in replies if isinstance(r, Answered)]
        assert [r.answers["card_profile"]["n"] for r in answered] == list(range(1, 120))
        assert client.post_many("payments", events, id="all") == replies


def test_a_token_that_does_not_open_is_no_reason_to_try_again(world):
    w = world(tokens={"board": "read"}, units=0)
    with Client(w.server.url, w.tokens["board"]) as client, pytest.raises(ServingError, match="scope 'post'"):
        client.post("payments", payment(1))
    with Client(w.server.url, "hr_none") as client, pytest.raises(ServingError, match="unauthorized"):
        client.post("payments", payment(1))


def test_who_is_refused_for_now_waits_and_comes_again(world):
    """More at once than may be in flight; all of them are answered, and each counts once."""
    w = world(limits=Limits(in_flight=4, in_flight_each=4))
    with Client(w.server.url) as client, ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda n: client.post("payments", payment(n, at=1)), range(24)))
    assert max(r.answers["card_profile"]["n"] for r in found) == 24
    assert w.metric('headrace_events_total{stream="payments"}') == 24


def test_an_answer_that_is_slow_is_waited_for(world):
    w = world(units=0, answer_s=0.05)
    timer = threading.Timer(0.3, w.add_unit)
    timer.start()
    with Client(w.server.url) as client:
        assert client.post("payments", payment(1)).answers["card_profile"]["n"] == 1
        timer.join()
        assert client.post("payments", payment(2)).answers["card_profile"]["n"] == 2


def test_an_answer_that_never_comes_is_an_error_that_says_that_the_event_counts(world):
    w = world(units=0, answer_s=0.05)
    w.post(payment(0))
    with Client(w.server.url, timeout=0.6) as client:
        with pytest.raises(ServingError) as error:
            client.post("payments", payment(1), id="slow")
        assert isinstance(error.value.reply, Unanswered)
        assert "counts" in error.value.hint
        assert isinstance(client.post_many("payments", [payment(2)])[0], Unanswered)


def test_nobody_there_is_an_error_that_says_so():
    with Client("http://127.0.0.1:9", timeout=0.3) as client, pytest.raises(ServingError, match="no answer in time"):
        client.post("payments", {})


def test_events_count_once_through_a_front_end_that_dies_again_and_again(world):
    """Posts go on while it is restarted; every event is answered, and none counts twice."""
    w = world(grace_s=0.0)
    stop = threading.Event()

    def restart():
        while not stop.wait(0.15):
            w.restart()

    restarting = threading.Thread(target=restart)
    restarting.start()
    try:
        with Client(w.server.url, timeout=30) as client, ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda n: client.post("payments", payment(n, at=1)), range(80)))
    finally:
        stop.set()
        restarting.join()
    assert sorted(r.answers["card_profile"]["n"] for r in found) == list(range(1, 81))


def test_changes_are_heard_by_who_subscribes(world):
    w = world()
    with Client(w.server.url) as client:
        with client.subscribe("shop") as changes:
            place = client.post("payments", payment(1)).place
            assert next(changes) == Change("shop", "+", place, "2026-01-01T12:00:00Z", {"id": 1, "merchant": "x", "mean": 10.0})
        with pytest.raises(ServingError, match="'none' does not exist"), client.subscribe("none"):
            pass


def test_a_subscription_that_ends_says_so(world):
    w = world(units=0)
    with Client(w.server.url) as client, client.subscribe("shop") as changes:
        w.server.stop()
        with pytest.raises(ServingError, match="has ended"):
            next(changes)


def test_the_same_with_a_loop(world):
    w = world()

    async def work():
        async with AsyncClient(w.server.url) as client, client.subscribe("card_profile") as changes:
            replies = await asyncio.gather(*(client.post("payments", payment(n, card=f"c{n}")) for n in range(20)))
            heard = [await anext(changes) for _ in range(20)]
        return {r.answers["card_profile"]["card"] for r in replies}, {c.row["card"] for c in heard}

    began = time.monotonic()
    answered, heard = asyncio.run(work())
    assert answered == heard == {f"c{n}" for n in range(20)}
    assert time.monotonic() - began < 5
