"""A process that runs a script over files, again and again in one session: kill_child.py SCRIPT CHECKPOINT SETTINGS.

It starts a run for every line on standard input, `follow` or `rest`, and says on standard output that it is `active`, and at last
`done`, or `failed` and why.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from headrace.errors import HeadraceError
from headrace.spark.jvm import process as jvm
from headrace.spark.run import start_run
from headrace.spark.session import local_session
from headrace.sql import parse_script


def main(script: str, checkpoint: str, settings: str) -> None:
    jvm._zygote = zygote_with_kill_points
    spark = local_session(**json.loads(settings))
    spark.sparkContext.setLogLevel("OFF")
    plan = parse_script(Path(script).read_text(encoding="utf-8"))
    for line in sys.stdin:
        follow = line.strip() == "follow"
        small = {"maxFilesPerTrigger": "1"} if follow else {}  # many small batches to be killed in, then the rest at once
        try:
            run = start_run(spark, plan, {}, checkpoint=checkpoint, follow=follow, buckets=2, options=small)
            print("active", flush=True)
            run.wait()
        except HeadraceError as error:
            print("failed:", *str(error).split(), flush=True)
        else:
            print("done", flush=True)


def zygote_with_kill_points(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """In the place of Headrace's own: all Python processes of Spark are forked from it, those that commit included."""
    program = Path(__file__).with_name("kill_zygote.py")
    command = [sys.executable, str(program), environment["HEADRACE_ZYGOTE"]]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
