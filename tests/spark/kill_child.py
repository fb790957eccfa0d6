"""A process that runs a script over files, so that it can be killed: kill_child.py SCRIPT CHECKPOINT [--follow].

It starts the query again when that fails, because a worker was lost.
"""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.spark.run import start_run
from headrace.spark.session import local_session
from headrace.sql import parse_script


def main(script: str, checkpoint: str, *options: str) -> None:
    spark = local_session()
    spark.sparkContext.setLogLevel("OFF")
    plan = parse_script(Path(script).read_text(encoding="utf-8"))
    follow = "--follow" in options
    small = {"maxFilesPerTrigger": "1"} if follow else {}  # many small batches to be killed in, then the rest at once
    while True:
        run = start_run(spark, plan, {}, checkpoint=checkpoint, follow=follow, buckets=2, options=small)
        print("active", flush=True)
        try:
            run.wait()
        except HeadraceError as error:
            print(error, file=sys.stderr, flush=True)
        else:
            print("done", flush=True)
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
