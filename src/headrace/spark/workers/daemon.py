"""The process that Spark has its Python workers from (`spark.python.daemon.module`). It speaks to Spark as PySpark's own does.

All that workers need is loaded once, here, before they are forked. PySpark's daemon loads nothing, lest a thread run when it
forks; there is none here that matters: no BLAS threads are started, and Arrow's allocator knows how to be forked.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import uuid

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded; nothing here multiplies matrices

from pyspark import worker  # noqa: F401
from pyspark.serializers import write_int, write_with_length

from headrace.spark.exchange import (
    pack,  # noqa: F401
    stateful,  # noqa: F401
)
from headrace.spark.sinks import sink  # noqa: F401
from headrace.spark.workers.pool import Pool

BACKLOG = 1024


def main() -> None:
    """Say where to connect, then have tasks run until Spark closes standard input."""
    os.setpgid(0, 0)  # what is forked here ends with it
    by_path = os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "false").lower() == "true"
    listen, path = _listen_by_path() if by_path else (_listen_by_port(), None)
    commands, out = os.fdopen(0, "rb", 4), os.fdopen(1, "wb", 4)
    if path is not None:
        write_with_length(path.encode(), out)
    else:
        write_int(listen.getsockname()[1], out)
    out.flush()
    for number, action in ((signal.SIGTERM, _stop), (signal.SIGHUP, signal.SIG_IGN), (signal.SIGCHLD, signal.SIG_IGN)):
        signal.signal(number, action)
    gc.collect()
    gc.freeze()  # what is loaded stays: workers share it, and never look through it
    try:
        # A trace of a crash is looked for under the number that Spark was told.
        fixed = "PYTHON_FAULTHANDLER_DIR" in os.environ
        Pool(listen, by_path, "SPARK_REUSE_WORKER" in os.environ, fixed).serve(commands)
    finally:
        if path is not None and os.path.exists(path):
            os.remove(path)
        os.killpg(0, signal.SIGHUP)


def _listen_by_path() -> tuple[socket.socket, str]:
    path = os.path.join(os.environ["PYTHON_WORKER_FACTORY_SOCK_DIR"], f".{uuid.uuid4()}.sock")
    listen = socket.socket(socket.AF_UNIX)
    listen.bind(path)
    listen.listen(BACKLOG)
    return listen, path


def _listen_by_port() -> socket.socket:
    if os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true":
        return socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=BACKLOG)
    return socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)


def _stop(number: int, frame: object) -> None:
    sys.exit(1)


if __name__ == "__main__":
    main()
