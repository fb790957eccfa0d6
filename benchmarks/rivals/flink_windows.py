"""Flink SQL over a small table of events: every query of a file of them, in one job, and its rows as one line of JSON."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from flink_job import parquet_at, parser, report, table_environment


def main(options: argparse.Namespace) -> None:
    queries = json.loads(Path(options.queries).read_text())
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        tables = table_environment(options, checkpoints)
        tables.execute_sql(f"""CREATE TABLE s (
            id BIGINT, card STRING, q BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
            WATERMARK FOR ts AS ts - INTERVAL '{options.delay_seconds:.3f}' SECOND
        ) WITH ({parquet_at(options.data)})""")
        with tables.execute_sql(" UNION ALL ".join(queries)).collect() as rows:
            found = [list(row) for row in rows]
    report({"engine": "flink", "rows": found})


def arguments() -> argparse.ArgumentParser:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--queries", required=True, help="a JSON list of SELECTs over s, all with the same columns")
    return options


if __name__ == "__main__":
    main(arguments().parse_args())
