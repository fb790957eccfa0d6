"""Processor units as long-lived Spark tasks: plain ones, one a unit, submitted again whenever their job ends.

Not barrier tasks: after the death of one of those Spark gives the whole job up. A plain task that dies is tried again by itself,
and when Spark has tried too often, or an executor takes all with it, the job is submitted anew.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.serve.hosting import UnitConfig, in_partition
from headrace.spark.session import SUBMITTED, local_session, submitted_session

MOST_FAILURES = 1_000  # of a task, before its job fails and is submitted again
GROUP = "headrace units"
AGAIN_S = 0.2


def units_session(units: int, quiet: bool) -> SparkSession:
    """The session that units run in: that of spark-submit, or one of this machine with a place for each of them."""
    if SUBMITTED in os.environ:
        return submitted_session()
    places: dict[str, Any] = {"spark.master": f"local[{units},{MOST_FAILURES}]"}
    return local_session(quiet=quiet, **places)


class SparkUnits:
    """All units of a deployment."""

    def __init__(self, spark: SparkSession, config: UnitConfig, units: int) -> None:
        self._context, self._config, self._units = spark.sparkContext, config, units
        self._stopped = threading.Event()
        self.submitted = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._supervise, daemon=True, name=GROUP)
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """They have been told to end; what does not is cancelled."""
        self._stopped.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            with suppress(PySparkException, Py4JError):
                self._context.cancelJobGroup(GROUP)
            self._thread.join(seconds)

    def _supervise(self) -> None:
        while not self._stopped.is_set():
            self.submitted += 1
            try:
                self._context.setJobGroup(GROUP, "units of headrace serve", interruptOnCancel=True)
                numbers = self._context.parallelize(range(self._units), self._units)
                numbers.mapPartitionsWithIndex(in_partition(self._config)).count()
            except (PySparkException, Py4JError, OSError) as error:
                self.failure = error
            self._stopped.wait(AGAIN_S)
