"""The file system shaky://, which renames like an object store and dies when it is told to (ShakyFileSystem.java)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAME = "ShakyFileSystem"
SOURCE = Path(__file__).with_name(f"{NAME}.java")


def install(spark: Any, classes: Path) -> Any:
    """Compile it into a directory on the session's class path, with the compiler that Spark has for its own code."""
    jvm = spark._jvm
    if not (classes / f"{NAME}.class").exists():
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setClassPath(_files(spark, jvm.java.lang.System.getProperty("java.class.path").split(":")))
        compiler.setDestinationDirectory(jvm.java.io.File(str(classes)), False)
        compiler.compile(_files(spark, [str(SOURCE)]))
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.shaky.impl", NAME)
    return getattr(jvm, NAME)


def _files(spark: Any, paths: list[str]) -> Any:
    array = spark.sparkContext._gateway.new_array(spark._jvm.java.io.File, len(paths))
    for number, path in enumerate(paths):
        array[number] = spark._jvm.java.io.File(path)
    return array
