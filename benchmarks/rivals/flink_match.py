"""Flink SQL `MATCH_RECOGNIZE`: for every payment that begins a pattern, the next one of its card that ends it, in time.

`A X*? D` with `SKIP TO NEXT ROW`: each A once, with the first D behind it. Flink's WITHIN is open: last - first < W.
"""

from __future__ import annotations

import argparse

from flink_job import parser, report, timed

COLUMNS = "card BIGINT, first_id BIGINT, last_id BIGINT"


def match_query(minutes: int, begins: str, ends: str) -> str:
    digits = max(2, len(str(minutes)))
    return f"""SELECT card, first_id, last_id FROM payments MATCH_RECOGNIZE (
        PARTITION BY card ORDER BY ts
        MEASURES A.id AS first_id, D.id AS last_id
        ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
        PATTERN (A X*? D) WITHIN INTERVAL '{minutes}' MINUTE({digits})
        DEFINE A AS {begins}, D AS {ends})"""


def main(options: argparse.Namespace) -> None:
    result = timed(options, COLUMNS, match_query(options.minutes, options.begins, options.ends))
    report({"engine": "flink", "query": "match_recognize", "minutes": options.minutes, **result})


def arguments() -> argparse.ArgumentParser:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--minutes", type=int, default=60)
    options.add_argument("--begins", required=True, help="what A is, over A")
    options.add_argument("--ends", required=True, help="what D is, over D")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
