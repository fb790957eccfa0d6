"""Too large, too deep, too many, too fast: refused in words, and memory has a bound."""

from __future__ import annotations

import asyncio
import json
import resource
import socket

import aiohttp
import pytest
from http_world import PAYMENTS, payment

from headrace.serve.http.limits import Limiter
from headrace.serve.http.options import Limits
from headrace.serve.http.replies import Refused
from headrace.serve.http.tokens import Token

NO_JSON = [
    b"", b"{", b"nothing", b'{"a": 1} {}', b'{"a": NaN}', b'"\xff"', b'{"a": 1e999999}x', b"[" * 100_000, b'{"a":' * 50_000,
]  # fmt: skip


def test_what_is_no_json_is_said_to_be_none(world):
    w = world(units=0)
    for body in NO_JSON:
        status, reply = w.post(body)
        assert (status, "JSON" in reply["error"]) == (400, True), body[:20]


def test_a_line_that_is_no_json_is_named_and_nothing_of_its_request_taken(world):
    w = world()
    text = b"\n".join([json.dumps(payment(1)).encode(), b"{", json.dumps(payment(2)).encode()])
    status, reply = w.post(text, headers={"Content-Type": "application/x-ndjson"})
    assert status == 400
    assert reply["error"].startswith("line 2: ")
    assert w.metric('headrace_events_total{stream="payments"}') == 0


def test_deep_json_within_the_bound_is_judged_as_any_other(world):
    w = world()
    assert w.post(b'{"id": ' + b"[" * 500 + b"]" * 500 + b"}")[0] == 422


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_before_it_is_there(world, chunked):
    w = world(limits=Limits(body=10_000), units=0)
    with socket.create_connection(w.address, 5) as connection:
        how = "Transfer-Encoding: chunked" if chunked else "Content-Length: 1000000000"
        head = f"POST {PAYMENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{how}\r\n\r\n"
        connection.sendall(head.encode() + b"4e20\r\n" * chunked + b"x" * 20_000)
        connection.settimeout(5)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_is_announced_is_asked_for(world):
    w = world(units=0, answer_s=0.1)
    with socket.create_connection(w.address, 5) as connection:
        body = json.dumps(payment(1)).encode()
        head = f"POST {PAYMENTS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        connection.settimeout(5)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 504")


def test_other_refusals_have_their_words(world):
    w = world(limits=Limits(batch=3), units=0)
    assert w.post([payment(n) for n in range(4)])[0] == 413
    assert w.post(b"{}", headers={"Content-Encoding": "gzip"})[0] == 415
    assert w.post(b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})[0] == 415
    assert w.post(payment(1), headers={"Idempotency-Key": "x" * 201})[0] == 400
    assert w.post(payment(1), path="/streams/none/events")[1]["error"].startswith(
        "stream 'none' does not exist; there are: payments"
    )
    assert w.ask("GET", "/ws")[0] == 426
    assert w.ask("GET", "/ws", headers={"Upgrade": "websocket", "Connection": "Upgrade"})[0] == 400


def test_a_thousand_at_once_are_answered_or_told_to_come_again(world):
    """Memory stays within what the bounds say; who is refused is told when to try again."""
    w = world(limits=Limits(in_flight=100, in_flight_each=100), answer_s=1.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def all_at_once():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def one(n):
                async with session.post(w.server.url + PAYMENTS, json=payment(n, card=f"c{n}", at=1)) as got:
                    return got.status, got.headers.get("Retry-After"), await got.json()

            return await asyncio.gather(*map(one, range(1000)))

    found = asyncio.run(all_at_once())
    statuses = [status for status, _, _ in found]
    assert set(statuses) <= {200, 429, 504}
    assert statuses.count(429) > 100
    assert all((after == "1") == (status == 429) for status, after, _ in found)
    assert w.metric('headrace_events_total{stream="payments"}') == 1000 - statuses.count(429)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KiB
    assert w.metric("headrace_in_flight") == 0


def test_events_that_nobody_answers_are_taken_up_to_a_bound(world):
    w = world(units=0, answer_s=0.01, limits=Limits(unanswered=3))
    assert [w.post(payment(n, at=n))[0] for n in range(5)] == [504, 504, 504, 503, 503]
    w.add_unit()


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def limiter(clock, **limits):
    return Limiter(Limits(**limits), lambda: 0, clock)


TILL, BOARD = (Token(name, b"", frozenset({"post"})) for name in ("till", "board"))


def take(limiter, token, count=1):
    with limiter.events(token, count):
        pass


def test_a_token_has_its_rate_and_others_theirs():
    clock = Clock()
    some = limiter(clock, rate=10.0)
    for _ in range(10):
        take(some, TILL)
    with pytest.raises(Refused) as refused:
        take(some, TILL)
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    take(some, BOARD)
    clock.now = 0.1
    take(some, TILL)
    with pytest.raises(Refused):
        take(some, TILL)


def test_over_time_nobody_exceeds_his_rate_by_batches():
    clock, taken = Clock(), 0
    some = limiter(clock, rate=10.0)
    for step in range(1000):
        clock.now = step / 10
        try:
            take(some, TILL, 7)
        except Refused:
            continue
        taken += 7
    assert 990 <= taken <= 1000 + 10 + 7


def test_what_is_in_flight_is_counted_by_token_and_in_all():
    some = limiter(Clock(), in_flight=5, in_flight_each=3)
    with some.events(TILL, 3):
        with pytest.raises(Refused), some.events(TILL, 1):
            pass
        with some.events(BOARD, 2), pytest.raises(Refused), some.events(BOARD, 1):
            pass
    take(some, TILL, 3)
    assert some.in_flight == 0


def test_bodies_have_a_bound_together():
    some = limiter(Clock(), bodies=10)
    with some.body(6):
        with pytest.raises(Refused), some.body(6):
            pass
        with some.body(4):
            pass
    with some.body(10):
        pass
