"""A socket that begins with a header: every file of its spool has it, since each is read by its own."""

from __future__ import annotations

import socket
import threading
import time

from headrace.plan.schema import Schema
from headrace.plan.stream import HostSource, Stream
from headrace.spark.sources.spool import SocketSpool

SCHEMA = Schema.of(id="INT", card="STRING", merchant="STRING")


def spooled(folder, pieces):
    """The files that a socket which sends these pieces is spooled to."""
    server = socket.create_server(("127.0.0.1", 0))
    source = HostSource("127.0.0.1", server.getsockname()[1])

    def serve():
        with server, server.accept()[0] as connection:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.6)

    threading.Thread(target=serve, daemon=True).start()
    spool = SocketSpool(str(folder), Stream("s", source, SCHEMA), source, follow=False)
    spool.wait()
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def test_a_header_is_in_every_file(tmp_path):
    assert spooled(tmp_path, [b"merchant,card,ID\nm1,c1,1\nm", b"2,c2,2\n"]) == [
        b"merchant,card,ID\nm1,c1,1\n",
        b"merchant,card,ID\nm2,c2,2\n",
    ]


def test_rows_without_header_stay_as_they_are(tmp_path):
    assert spooled(tmp_path, [b"1,c1,m1\n", b"2,c2,m2\n"]) == [b"1,c1,m1\n", b"2,c2,m2\n"]
