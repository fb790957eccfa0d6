"""A process that runs a script over files to the end, so that it can be killed: kill_child.py SCRIPT CHECKPOINT."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.spark.run import start_run
from headrace.spark.session import local_session
from headrace.sql import parse_script


def main(script: str, checkpoint: str) -> None:
    spark = local_session()
    spark.sparkContext.setLogLevel("OFF")
    text = Path(script).read_text(encoding="utf-8")
    run = start_run(spark, parse_script(text), {}, checkpoint=checkpoint, buckets=2, options={"maxFilesPerTrigger": "1"})
    print("active", flush=True)
    run.wait()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
