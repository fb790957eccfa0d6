"""Flink SQL `OVER`: SUM and COUNT per card over the last minutes, for every event.

Flink's RANGE is closed below, [t - W, t], and sees peers; what it is held against is our own `[RANGE ..]`, (t - W, t].
"""

from __future__ import annotations

import argparse

from flink_job import parser, report, timed

COLUMNS = "id BIGINT, card BIGINT, ts TIMESTAMP_LTZ(3), total DOUBLE, n BIGINT"


def over_query(minutes: int) -> str:
    digits = max(2, len(str(minutes)))  # of the interval; two is SQL's default
    return f"""SELECT id, card, ts, SUM(amount) OVER w AS total, COUNT(*) OVER w AS n
        FROM payments WINDOW w AS (
            PARTITION BY card ORDER BY ts
            RANGE BETWEEN INTERVAL '{minutes}' MINUTE({digits}) PRECEDING AND CURRENT ROW)"""


def main(options: argparse.Namespace) -> None:
    result = timed(options, COLUMNS, over_query(options.minutes))
    report({"engine": "flink", "query": "over", "minutes": options.minutes, **result})


def arguments() -> argparse.ArgumentParser:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--minutes", type=int, default=60)
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
