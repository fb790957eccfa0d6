"""A Spark session tuned for streams on one machine. A user's own session does without it."""

from __future__ import annotations

import os
import signal
import threading

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headrace.spark.failures import explained
from headrace.spark.jvm.gateway import own_context
from headrace.spark.settings import LOCAL, STREAMING, settings_of
from headrace.spark.workers.interpreter import choose_interpreter

__all__ = ["LOCAL", "STREAMING", "local_session", "require_state_store", "script_session"]

SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the Python that it starts


def local_session(name: str = "headrace", cores: int | None = None, quiet: bool = False, **settings: str) -> SparkSession:
    """A session in this process, with the settings that make small micro-batches quick; the one there is, if there is one.

    With `quiet`, nothing that the JVM or the Python workers say reaches the terminal.
    """
    choose_interpreter()
    every = settings_of(name, cores, **settings)
    interrupt = signal.getsignal(signal.SIGINT)
    with explained():
        if SparkContext._active_spark_context is None and SparkContext._gateway is None:
            own_context(every, quiet)  # the session below finds it
        builder = SparkSession.builder
        for key, value in every.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread() and interrupt is not None:
        # PySpark would cancel all jobs on Ctrl-C, in the midst of another call to the JVM: a stream would fail, not stop.
        signal.signal(signal.SIGINT, interrupt)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def script_session(quiet: bool) -> SparkSession:
    """The session that a script runs in: that of spark-submit, where one started this process, else one of this machine."""
    return submitted_session() if SUBMITTED in os.environ else local_session(quiet=quiet)


def submitted_session() -> SparkSession:
    """The session that spark-submit was asked for, with what streams need where it was not told otherwise."""
    told = SparkConf()  # all that spark-submit was given, by its arguments and its files
    with explained():
        builder = SparkSession.builder
        for key, value in STREAMING.items():
            if not told.contains(key):
                builder = builder.config(key, value)
        return builder.getOrCreate()


def require_state_store(spark: SparkSession) -> None:
    """The setting without which a stateful Python operator cannot run, for a session that is not ours."""
    key = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(key, STREAMING[key])
