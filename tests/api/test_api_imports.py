"""Spark's Python workers import kernels from this package: that must not load the API, SQL or Spark."""

from __future__ import annotations

import subprocess
import sys


def test_the_package_alone_loads_little():
    code = "import sys, headrace; print([m for m in ('sqlglot', 'pyspark', 'headrace.api', 'headrace.plan') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_api_does_not_load_spark():
    code = "import sys, headrace as hr; hr.range('5 minutes'); hr.sql; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
