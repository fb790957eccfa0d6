"""Headrace's zygote, with points in what it loads at which the processes that it forks kill themselves: kill_zygote.py SOCKET."""

from __future__ import annotations

import sys

from kill_points import wrap

from headrace.spark.workers.zygote import Zygote, listen_at, load

if __name__ == "__main__":
    server = listen_at(sys.argv[1])
    load()
    wrap()
    Zygote(server).serve()
