"""Conversations over a WebSocket."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
from http_world import payment

from headrace.serve.http.options import Limits
from headrace.serve.http.tokens import remove_token


class Talk:
    """One connection. Messages that are no replies wait until they are asked for."""

    def __init__(self, socket):
        self.socket = socket

    async def say(self, **message):
        await self.socket.send_str(json.dumps(message))

    async def hear(self):
        message = await asyncio.wait_for(self.socket.receive(), 5)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        return json.loads(message.data)

    async def ask(self, **message):
        await self.say(**message)
        return await self.hear()


def talk(w, do, token=None, **how):
    async def over():
        headers = {} if token is None else {"Authorization": f"Bearer {w.tokens[token]}"}
        async with aiohttp.ClientSession() as session, session.ws_connect(w.server.url + "/ws", headers=headers, **how) as socket:
            return await do(Talk(socket))

    return asyncio.run(over())


def post(n, **more):
    return {"post": "payments", "id": f"e{n}", "event": payment(n, **more)}


def test_events_are_answered_by_their_ids_and_counted_in_their_order(world):
    w = world()

    async def do(t):
        for n in range(30):
            await t.say(**post(n, at=n))
        return [await t.hear() for _ in range(30)]

    found = {reply["id"]: reply for reply in talk(w, do)}
    assert [found[f"e{n}"]["reply"]["answers"]["card_profile"]["n"] for n in range(30)] == list(range(1, 31))
    assert {reply["status"] for reply in found.values()} == {200}
    assert w.post(payment(3), headers={"Idempotency-Key": "e3"})[1] == found["e3"]["reply"]


def test_what_is_refused_is_so_for_its_message_only(world):
    w = world()

    async def do(t):
        return [
            await t.ask(post="none", id="a", event={}), await t.ask(post="payments", id="b", event={"id": "x"}),
            await t.ask(post="payments", id="", event=payment(1)), await t.ask(hello="there"),
            await t.ask(post="payments", event={}),
            await t.ask(subscribe=["none"]), await t.ask(**post(1)),
        ]  # fmt: skip

    found = talk(w, do)
    assert [(r["id"], r["status"]) for r in found] == [
        ("a", 404), ("b", 422), ("", 400), (None, 400), (None, 400), (None, 404), ("e1", 200)
    ]  # fmt: skip


NO_JSON = ["", "{", "[]", "1", '"post"', "[" * 100_000, '{"id": ' + "[" * 5_000]


def test_a_message_that_is_no_json_is_answered(world):
    async def do(t):
        for text in NO_JSON:
            await t.socket.send_str(text)
            assert (await t.hear())["status"] == 400, text[:20]
        return (await t.ask(subscribe=[]))["subscribed"]

    assert talk(world(units=0), do) == []


def test_who_subscribes_hears_every_change_with_corrections(world):
    w = world()

    async def do(t):
        assert (await t.ask(subscribe=["card_profile"]))["subscribed"] == ["card_profile"]
        await asyncio.to_thread(w.post, payment(1, at=20))
        await asyncio.to_thread(w.post, payment(2, at=15))
        heard = [(await t.hear())["change"] for _ in range(4)]
        assert (await t.ask(unsubscribe=["card_profile"]))["subscribed"] == []
        await asyncio.to_thread(w.post, payment(3, at=25))
        return heard, await t.ask(subscribe=["shop"])

    heard, last = talk(w, do)
    assert sorted((c["op"], c["row"]["id"], c["row"]["total"]) for c in heard) == [
        ("+", 1, 10.0), ("+", 1, 20.0), ("+", 2, 10.0), ("-", 1, 10.0)
    ]  # fmt: skip
    assert last == {"subscribed": ["shop"]}


def test_scopes_hold_in_conversations_too(world):
    w = world(tokens={"till": "post", "board": "read"})

    async def do(t):
        return [(await t.ask(**post(1))).get("status"), (await t.ask(subscribe=["shop"])).get("status")]

    assert talk(w, do, "till") == [200, 403]
    assert talk(w, do, "board") == [403, None]


def test_a_token_that_is_taken_away_ends_its_conversations(world):
    w = world(tokens={"till": "post", "board": "read"}, units=0)

    async def do(t):
        await t.ask(subscribe=["shop"])
        remove_token(w.options.tokens, "board")
        return await asyncio.wait_for(t.socket.receive(), 5)

    closed = talk(w, do, "board")
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.POLICY_VIOLATION)


def test_a_message_that_is_too_large_ends_the_conversation(world):
    async def do(t):
        await t.socket.send_str("x" * 20_000)
        return await asyncio.wait_for(t.socket.receive(), 5)

    closed = talk(world(units=0, limits=Limits(body=10_000)), do)
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)


def test_binary_is_not_understood(world):
    async def do(t):
        await t.socket.send_bytes(b"{}")
        return await asyncio.wait_for(t.socket.receive(), 5)

    assert talk(world(units=0), do).data == aiohttp.WSCloseCode.UNSUPPORTED_DATA


def test_who_does_not_read_is_cut_off_before_it_costs_memory(world):
    """He hears of it: nothing is lost silently."""
    w = world(limits=Limits(outbox=20_000))

    async def do(t):
        await t.ask(subscribe=["shop", "card_profile"])
        t.socket._response.connection.transport.pause_reading()
        big = "x" * 10_000
        for n in range(800):
            await asyncio.to_thread(w.post, payment(n, card=big, merchant=big, at=n // 10))
            if w.metric("headrace_subscribers") == 0:
                break
        t.socket._response.connection.transport.resume_reading()
        while (message := await asyncio.wait_for(t.socket.receive(), 5)).type is aiohttp.WSMsgType.TEXT:
            pass
        return message

    began = time.monotonic()
    closed = talk(w, do)
    assert closed.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
    assert time.monotonic() - began < 20


def test_more_than_may_wait_is_told_to_come_again(world):
    w = world(units=0, answer_s=0.3, limits=Limits(in_flight_each=5))

    async def do(t):
        for n in range(10):
            await t.say(**post(n, at=n))
        return [await t.hear() for _ in range(10)]

    statuses = [r["status"] for r in talk(w, do)]
    assert sorted(statuses) == [429] * 5 + [504] * 5
