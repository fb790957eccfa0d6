"""Settings of a Spark session that runs many plans, each of them once, over a few rows.

Plans are interpreted instead of compiled, which is most of the work for a few rows. Nor does the JVM optimize what it compiles:
that takes a third of its time, and pays in runs that are longer than all tests. It has room for Spark's classes and for small
batches from the start: else it collects everything seven times while it comes up; and for what it compiles, which it would
else look through for what is no longer used.
"""

from __future__ import annotations

from headrace.spark.settings import LOCAL

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
JAVA = "spark.driver.extraJavaOptions"
SMALL = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m -Xms1g"
QUICK = {**INTERPRETED, JAVA: f"{LOCAL[JAVA]} {SMALL}"}
