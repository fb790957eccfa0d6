"""`python -m headrace.spark.jvm.archive`: the classes that Spark loads, in an archive that a JVM maps instead of reading jars.

Made at set-up, by a small run whose JVM writes the archive when it ends. It belongs to one Java and one Spark; a JVM that finds
another one, or none, starts all the same.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from headrace.errors import SetupError
from headrace.spark.jvm import process as jvm
from headrace.spark.settings import settings_of

SCRIPT = """
CREATE STREAM rows (id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('{file}') TIMESTAMP BY at DELAY 1 MINUTE;
SELECT id, name, COUNT(*) AS n, SUM(amount) AS total FROM rows [RANGE 5 MINUTES] GROUP BY name EMIT FINAL IN ORDER;
"""
ROWS = "id,name,amount,at\n1,a,1.5,2026-03-02 12:00:40Z\n2,a,2.5,2026-03-02 12:03:00Z\n"
WRITE_S = 300.0


def make_archive() -> Path:
    """Run a query, and have its JVM write down what it loaded; what was there for another Java or Spark goes."""
    java, home = jvm.java_program(), jvm.pyspark_home()
    if java is None or home is None:
        raise SetupError("there is no Java, or no Spark with its jars", hint="`make setup` installs both")
    archive = jvm.archive_of(java, home)
    archive.parent.mkdir(parents=True, exist_ok=True)
    aside = archive.with_suffix(f".{os.getpid()}")
    started = jvm.launch(settings_of(), True, f"-XX:ArchiveClassesAtExit={aside}", halt=False)
    if started is None:
        raise SetupError("Spark is started by settings of your own, for which no archive is made")
    jvm.hand_over(started)
    try:
        _run()
    finally:
        started.end(WRITE_S)
    if not aside.exists():
        raise SetupError("the JVM wrote no archive", hint="nothing depends on it but how soon Spark starts")
    for old in archive.parent.glob("classes-*.jsa"):
        old.unlink()
    os.replace(aside, archive)
    return archive


def _run() -> None:
    from headrace.spark.run import start_script
    from headrace.sql import parse_script

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        file.write_text(ROWS)
        start_script(parse_script(SCRIPT.format(file=file))).wait()


if __name__ == "__main__":
    print(make_archive(), file=sys.stderr)
