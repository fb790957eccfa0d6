"""Flink SQL `HOP`: SUM and COUNT per card, 60 minutes by a hop of 5 minutes down to 1 second.

Slow for short hops: give it few rows, from `Payments.shrink`, which keeps the events per card and window.
"""

from __future__ import annotations

import argparse

from flink_job import parser, report, timed

COLUMNS = "card BIGINT, opens TIMESTAMP(3), closes TIMESTAMP(3), total DOUBLE, n BIGINT"


def hop_query(minutes: int, hop_seconds: int) -> str:
    digits = max(2, len(str(hop_seconds)))  # of the interval; two is SQL's default
    return f"""SELECT card, window_start, window_end, SUM(amount), COUNT(*)
        FROM TABLE(HOP(TABLE payments, DESCRIPTOR(ts),
            INTERVAL '{hop_seconds}' SECOND({digits}), INTERVAL '{minutes}' MINUTE))
        GROUP BY card, window_start, window_end"""


def main(options: argparse.Namespace) -> None:
    result = timed(options, COLUMNS, hop_query(options.minutes, options.hop_seconds))
    sizes = {"minutes": options.minutes, "hop_seconds": options.hop_seconds}
    report({"engine": "flink", "query": "hop", **sizes, **result})


def arguments() -> argparse.ArgumentParser:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--minutes", type=int, default=60)
    options.add_argument("--hop-seconds", type=int, default=60)
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
