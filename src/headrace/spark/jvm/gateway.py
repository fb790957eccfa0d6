"""The connection between this process and the JVM of a session of our own."""

from __future__ import annotations

import os

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from headrace.spark.jvm.chatter import Chatter, why_no_java
from headrace.spark.jvm.process import Jvm, take

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
# What PySpark asks for with nearly every column. For each answer the JVM would look through all jars for classes of the
# shorter names, too.
ASKED_FOR = ("org.apache.spark.sql.functions", "functions", "PythonUtils", "PythonSQLUtils", "py4j")


def own_context(settings: dict[str, str], quiet: bool) -> SparkContext:
    """A Spark context in a new JVM. With `quiet`, that writes neither to standard output nor to standard error of ours."""
    conf = SparkConf().setAll(list(settings.items()))
    jvm = take(settings, quiet)
    if jvm is None:
        return SparkContext(conf=conf, gateway=_by_scripts(conf, quiet))
    context = SparkContext(conf=conf, gateway=_connect(jvm))
    # PySpark's listener would tell of every connection that ends with the JVM.
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return context


def _connect(jvm: Jvm) -> JavaGateway:
    import pandas  # noqa: F401  # PySpark will, for every function that travels: better now, while the JVM comes up

    if not jvm.reachable():
        jvm.end()
        raise why_no_java(jvm.last_words())
    with open(jvm.info, "rb") as info:
        found = {PORT: str(read_int(info)), SECRET: UTF8Deserializer().loads(info)}
    os.environ.update(found)  # to PySpark: the JVM is there already
    try:
        gateway = launch_gateway()
    finally:
        for name in found:
            os.environ.pop(name, None)
    gateway.proc = jvm.process
    for name in ASKED_FOR:
        vars(gateway.jvm)[name] = getattr(gateway.jvm, name)  # found there, it is not asked for again
    return gateway


def _by_scripts(conf: SparkConf, quiet: bool) -> JavaGateway:
    """As PySpark does it, where the user has settings for Spark's scripts, or they know better."""
    chatter = Chatter()
    failure: PySparkRuntimeError | None = None
    try:
        return launch_gateway(conf, {"stdout": chatter.write, "stderr": chatter.write} if quiet else None)
    except PySparkRuntimeError as error:
        failure = error
    finally:
        chatter.close()
    raise why_no_java(chatter.last_words()) from failure
