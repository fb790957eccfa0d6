"""Every case in these folders on the oracle and in the in-process runtime; `tests/spark/test_queries_on_spark.py` has Spark.

`HEADRACE_UPDATE=1 pytest tests/queries` writes what the oracle says into the cases; read the difference before keeping it.
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from random import Random

import pytest

from headrace.plan.aggregates import FUNCTIONS
from headrace.plan.nodes import Node, WindowAggregate, children
from headrace.plan.query import Emit
from headrace.plan.windows import RangeWindow, RowsWindow
from headrace.testing.cases import check_engine, check_oracle, complete, read_case
from headrace.testing.conformance import check_restarts_throughout, recut_run
from headrace.testing.local import local_engine

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.case"))


def names(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def for_engine(engine: str) -> list[object]:
    """The cases that an engine runs; those it is known to fail are expected to."""
    out: list[object] = []
    for path in FILES:
        case = read_case(path)
        if engine in case.left_out:
            continue
        marks = [pytest.mark.xfail(reason=case.broken[engine], strict=True)] if engine in case.broken else []
        out.append(pytest.param(path, id=names(path), marks=marks))
    return out


@pytest.mark.parametrize("path", FILES, ids=names)
def test_oracle(path):
    if os.environ.get("HEADRACE_UPDATE"):
        complete(path)
    check_oracle(read_case(path))


@pytest.mark.parametrize("path", for_engine("local"))
def test_local(path):
    """As it stands, and in other batches (those of patterns, which the oracle takes long for, in theirs) between restarts."""
    case = read_case(path)
    check_engine(case, local_engine)
    other = case.run if "patterns" in path.parent.name else recut_run(case.run, Random(0))
    check_restarts_throughout(other, local_engine, buckets=2)


def test_every_aggregate_over_every_window_at_every_level():
    seen = {
        (call.function.name, kind(node), query.emit)
        for path in FILES
        for query in read_case(path).script.queries
        for node in windows(query.node)
        for call in node.aggregates
    }
    kinds = ("RANGE", "LAG", "ROWS", "ROWS PARTITIONED BY", "UNBOUNDED")
    assert not set(product(FUNCTIONS, kinds, Emit)) - seen


def windows(node: Node) -> list[WindowAggregate]:
    own = [node] if isinstance(node, WindowAggregate) else []
    return own + [found for child in children(node) for found in windows(child)]


def kind(node: WindowAggregate) -> str:
    match node.window:
        case RangeWindow(lag=lag):
            return "LAG" if lag else "RANGE"
        case RowsWindow(partition_by=by):
            return "ROWS PARTITIONED BY" if by else "ROWS"
    return "UNBOUNDED"
