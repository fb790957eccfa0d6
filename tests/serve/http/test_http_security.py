"""Who is let in, and what a stranger can do: nothing, and learn nothing from it."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import time
from contextlib import suppress

import pytest
from http_world import PAYMENTS, payment

from headrace.errors import QueryError
from headrace.serve.http.options import Limits, Options
from headrace.serve.http.server import HttpServer
from headrace.serve.http.tokens import remove_token

TOKENS = {"till": "post", "board": "read", "chief": "admin"}
STRANGERS = [None, "hr_wrong", "", "hr_" + "é" * 40]


@pytest.fixture
def guarded(world):
    return world(tokens=TOKENS)


def test_a_stranger_sees_one_and_the_same_whatever_he_asks_for(guarded):
    seen = set()
    for token in STRANGERS:
        for method, path in [
            ("GET", "/"), ("GET", "/health"), ("GET", "/nothing"), ("POST", PAYMENTS), ("POST", "/streams/none/events"),
            ("GET", "/metrics"), ("DELETE", "/ws"), ("GET", "/ws"), ("PATCH", "/docs"),
        ]:  # fmt: skip
            got = guarded.ask(method, path, payment(1) if method == "POST" else None, headers=_bearer(token))
            got[1].pop("Date")
            seen.add((got[0], str(sorted(got[1].items())), str(got[2])))
    assert len(seen) == 1
    (one,) = seen
    assert one[0] == 401
    assert not re.search(r"aiohttp|python|headrace|\d\.\d", one[1] + one[2], re.I)
    assert guarded.metric('headrace_events_total{stream="payments"}', token="chief") == 0


def _bearer(token):
    return {} if token is None else {"Authorization": f"Bearer {token}".encode().decode("latin-1")}


def test_other_ways_to_say_who_one_is_do_not_count(guarded):
    token = guarded.tokens["chief"]
    for header in (token, f"Basic {token}", f"Bearer{token}", f"Bearer {token}x", f"Bearer x {token}"):
        assert guarded.ask("GET", "/", headers={"Authorization": header})[0] == 401
    assert guarded.ask("GET", f"/?token={token}")[0] == 401


def test_a_token_may_what_its_scopes_say(guarded):
    for token, may_post, may_read in (("till", 200, 403), ("board", 403, 200), ("chief", 200, 200)):
        assert guarded.post(payment(1), token=token)[0] == may_post
        for path in ("/", "/docs", "/openapi.json", "/metrics"):
            assert guarded.ask("GET", path, token=token)[0] == may_read
        assert guarded.ask("GET", "/health", token=token)[0] == 200
    assert guarded.post(payment(1), path="/streams/none/events", token="board")[0] == 403
    assert guarded.post(payment(1), path="/streams/none/events", token="till")[0] == 404
    assert guarded.ask("GET", "/none", token="till")[0] == 404
    status, headers, _ = guarded.ask("GET", PAYMENTS, token="till")
    assert (status, headers["Allow"]) == (405, "POST")


def test_a_token_that_is_taken_away_opens_nothing_any_more(guarded):
    assert guarded.post(payment(1), token="till")[0] == 200
    remove_token(guarded.options.tokens, "till")
    until = time.monotonic() + 5
    while guarded.post(payment(2), token="till")[0] != 401:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_taking_away_all_tokens_lets_nobody_in(guarded):
    guarded.options.tokens.unlink()
    time.sleep(1.1)
    assert guarded.ask("GET", "/", token="chief")[0] == 401
    assert guarded.ask("GET", "/")[0] == 401


def test_without_tokens_only_this_machine_is_answered(world):
    w = world()
    assert any("no tokens" in line for line in w.said)
    with pytest.raises(QueryError, match="without tokens"):
        HttpServer(w.front, Options(host="0.0.0.0")).start()


def test_without_tokens_a_page_of_somebody_else_cannot_speak_for_its_reader(world):
    w = world()
    port = w.options.port
    for headers in (
        {"Origin": "https://evil.example"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Host": "["},
    ):
        assert w.post(payment(1), headers=headers)[0] == 403
        assert w.ask("GET", "/ws", headers=headers | {"Upgrade": "websocket"})[0] == 403
    assert w.post(payment(1), headers={"Content-Type": "text/plain"})[0] == 415  # what a form could send
    assert w.post(payment(1), headers={"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}"})[0] == 200


def test_nobody_is_shown_what_went_wrong_inside(world):
    w = world()
    w.front.now = lambda: 1 / 0
    status, reply = w.post(payment(1))
    assert (status, reply) == (500, {"error": "this is a bug, and has been noted"})
    assert any(line.startswith("ZeroDivisionError: 'division by zero' at ") for line in w.said)


def test_what_is_noted_is_one_line_whatever_a_sender_wrote(world):
    w = world()

    def fails(*_):
        raise ValueError("a\nforged: line\x1b[31m")

    w.front.now = fails
    assert w.post(payment(1))[0] == 500
    noted = [line for line in w.said if line.startswith("ValueError")]
    assert len(noted) == 1
    assert "\n" not in noted[0]
    assert "\x1b" not in noted[0]


def test_over_tls_and_over_nothing_else(world, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
               "-subj", "/CN=localhost",
               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    w = world(cert=cert, key=key, tokens={"chief": "admin"}, units=0)
    assert w.server.url.startswith("https://127.0.0.1:")
    request = (
        f"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {w.tokens['chief']}\r\nConnection: close\r\n\r\n".encode()
    )
    context = ssl.create_default_context(cafile=str(cert))
    with context.wrap_socket(socket.create_connection(w.address, 5), server_hostname="127.0.0.1") as tls:
        tls.sendall(request)
        assert tls.recv(100).startswith(b"HTTP/1.1 200")
    with socket.create_connection(w.address, 5) as plain:
        plain.sendall(request)
        assert not plain.recv(100).startswith(b"HTTP")


NO_HTTP = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50, b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"GET / HTTP/1.1\r\nBad Header\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
    ]  # fmt: skip


def test_what_is_no_http_is_refused_without_a_word_about_us(world):
    w = world(tokens=TOKENS, units=0)
    for text in NO_HTTP:
        got = said_to(w, text)
        assert not re.search(rb"aiohttp|Traceback|python", got, re.I)
        assert got == b"" or got.split()[1] in (b"400", b"401")
    assert w.ask("GET", "/health", token="chief")[0] == 200


def said_to(w, text):
    """All that comes back for some bytes."""
    got = b""
    with socket.create_connection(w.address, 5) as connection, suppress(ConnectionError):
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(4096):
            got += part
    return got


def test_who_sends_nothing_is_hung_up_on(world):
    w = world(tokens=TOKENS, header_s=0.3, idle_s=0.3, units=0)
    silent, slow, again = (socket.create_connection(w.address, 5) for _ in range(3))
    with silent, slow, again:
        began = time.monotonic()
        slow.sendall(b"GET / HT")
        again.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert again.recv(1000).startswith(b"HTTP/1.1 401")
        again.sendall(b"GET / HT")
        time.sleep(0.2)
        slow.sendall(b"TP/1.1\r\n")
        for connection in (silent, slow, again):
            connection.settimeout(5)
            assert _end_of(connection) == b""
        assert time.monotonic() - began < 3


def test_who_sends_a_body_byte_by_byte_is_told_so(world):
    w = world(tokens=TOKENS, body_s=0.3, units=0)
    with socket.create_connection(w.address, 5) as slow:
        head = f"POST {PAYMENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {w.tokens['till']}\r\n"
        slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{{".encode())
        slow.settimeout(5)
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_there_are_only_so_many_connections(world):
    w = world(tokens=TOKENS, limits=Limits(connections=5), units=0)
    connections = [socket.create_connection(w.address, 5) for _ in range(8)]
    time.sleep(0.2)
    hung_up = 0
    for connection in connections:
        connection.settimeout(0.05)
        with suppress(TimeoutError):
            hung_up += _end_of(connection) == b""
    for connection in connections:
        connection.close()
    assert hung_up == 3


def _end_of(connection):
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""
