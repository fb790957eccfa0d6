"""The rows in of the progress are the rows that were read, each once, whatever the queries of the script do with them."""

from __future__ import annotations

import os

import pytest
from case_driver import FIRST_WRITTEN

from headrace.runs.events import ProgressEvent
from headrace.spark.run import start_run
from headrace.sql import parse_script

QUERIES = {
    "a filter that is pushed down": "SELECT id FROM p WHERE n > 100",
    "two filters": "SELECT id FROM p WHERE n > 100; SELECT id FROM p WHERE n < 3",
    "a join with itself": "SELECT a.id FROM p [RANGE 5 SECONDS] a JOIN p [RANGE 5 SECONDS] b ON a.k = b.k",
    "a pattern of one stream": "EVENT SEQ(p x, p y, p z) WHERE x.k = y.k AND y.k = z.k AND x.n > 3 WITHIN 5 SECONDS RETURN x.id",
    "several stages": "SELECT COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY k; SELECT COUNT(*) AS m FROM p [ROWS 3] GROUP BY n",
    "by time and arrival": "SELECT COUNT(*) AS c FROM p [ROWS 3]; SELECT COUNT(*) AS d FROM p [ROWS 2] WITH (order = 'arrival')",
    "rejected rows alone": "SELECT reason FROM rejected(p)",
}
FIRST = ["1,a,1,2024-01-01 00:00:01", "2,b,2,2024-01-01 00:00:02", "x,a,3,2024-01-01 00:00:03", "4,b,4,2024-01-01 00:00:40"]
SECOND = ["5,a,5,2024-01-01 00:00:05", "6,b,6,2024-01-01 00:00:41", "7,a,7,2024-01-01 00:00:42", "8,a,8,2024-01-01 00:00:43"]


@pytest.mark.parametrize("name", QUERIES)
def test_rows_in_are_the_rows_that_were_read(spark, tmp_path, name):
    """Four rows a file; one is rejected, and one is late, wherever its stream is read by time without a filter."""
    (tmp_path / "in").mkdir()
    for number, lines in enumerate((FIRST, SECOND)):
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("\n".join(["id,k,n,at", *lines, ""]))
        os.utime(path, (FIRST_WRITTEN + number, FIRST_WRITTEN + number))
    columns = "id BIGINT, k STRING, n INT, at TIMESTAMP"
    stream = f"CREATE STREAM p ({columns}) SOURCE FILE('{tmp_path}/in/*.csv') TIMESTAMP BY at DELAY 5 SECONDS;"
    run = start_run(
        spark, parse_script(stream + QUERIES[name]), {}, checkpoint=str(tmp_path / "state"), buckets=2,
        options={"maxFilesPerTrigger": "1"},
    )  # fmt: skip
    run.wait(120)
    progress = [event for event in run.poll(0.1) if isinstance(event, ProgressEvent)]
    assert sum(e.rows_in for e in progress) == 8
    assert sum(e.rejected for e in progress) == 1
    late = sum(e.late for e in progress)
    assert late == 1 if name not in ("a filter that is pushed down", "two filters", "rejected rows alone") else late <= 1
