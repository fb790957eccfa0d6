"""Flink SQL `MATCH_RECOGNIZE`: for every payment that begins a pattern, the next ones of its card that go on and end it, in time.

`A X0*? D` with `SKIP TO NEXT ROW`: each A once, with the first D behind it. Flink's WITHIN is open: last - first < W. With
`--repeat`, the job is submitted again in the same JVM: the first run is cold, those behind it are warm.
"""

from __future__ import annotations

import argparse

from flink_job import parser, report, timed


def match_query(options: argparse.Namespace) -> str:
    digits = max(2, len(str(options.minutes)))
    return f"""SELECT {options.columns} FROM payments MATCH_RECOGNIZE (
        PARTITION BY card ORDER BY ts
        MEASURES {options.measures}
        ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
        PATTERN ({options.pattern}) WITHIN INTERVAL '{options.minutes}' MINUTE({digits})
        DEFINE {options.define})"""


def sink_columns(options: argparse.Namespace) -> str:
    return ", ".join(f"{name} BIGINT" for name in options.columns.split(","))


def main(options: argparse.Namespace) -> None:
    result = timed(options, sink_columns(options), match_query(options))
    report({"engine": "flink", "query": "match_recognize", "minutes": options.minutes, **result})


def arguments() -> argparse.ArgumentParser:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--minutes", type=int, default=60)
    options.add_argument("--pattern", required=True, help="such as A X0*? D")
    options.add_argument("--define", required=True, help="what its letters are")
    options.add_argument("--measures", required=True, help="ids of the payments of a match")
    options.add_argument("--columns", required=True, help="of a match: the card and those ids")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
