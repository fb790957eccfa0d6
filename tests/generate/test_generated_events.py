from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import QueryError
from headrace.generate import KINDS, SCHEMAS, Options, events
from headrace.generate.draws import BLOCK, gaussian, words
from headrace.generate.options import default_options
from headrace.generate.walk import boundary
from headrace.plan.arrow import arrow_schema
from headrace.plan.time import SECOND

kinds = pytest.mark.parametrize("kind", list(KINDS))
LATE = {"late_share": 0.3, "late_max": 5 * SECOND}


def micros(batch: pa.RecordBatch) -> np.ndarray:
    return batch.column("at").cast(pa.int64()).to_numpy()


@kinds
def test_columns_are_those_of_the_schema(kind):
    assert events(kind, Options(), 0, 10).schema == arrow_schema(SCHEMAS[kind])
    assert events(kind, Options(rows=0), 0, 10).schema == arrow_schema(SCHEMAS[kind])


@kinds
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 3 * BLOCK), max_size=6), seed=st.integers(0, 2**64 - 1))
def test_any_cut_gives_the_same_rows(kind, cuts, seed):
    options = Options(seed=seed, keys=50, skew=1.0, **LATE)
    edges = [0, *sorted(cuts), 3 * BLOCK]
    parts = [events(kind, options, a, b - a) for a, b in pairwise(edges)]
    whole = events(kind, options, 0, 3 * BLOCK)
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([whole]))


@kinds
def test_seeds_differ(kind):
    assert not events(kind, Options(seed=1), 0, 100).equals(events(kind, Options(seed=2), 0, 100))


@kinds
def test_rows_end_the_stream(kind):
    options = Options(rows=BLOCK + 5)
    assert events(kind, options, 0, 10 * BLOCK).num_rows == BLOCK + 5
    assert events(kind, options, BLOCK, 100).num_rows == 5
    assert events(kind, options, 2 * BLOCK, 100).num_rows == 0


@kinds
def test_in_order_when_nothing_is_late(kind):
    assert (np.diff(micros(events(kind, Options(rate=900_000.0), 0, 3 * BLOCK))) >= 0).all()


@kinds
def test_no_row_is_further_behind_than_late_max_and_some_come_near(kind):
    at = micros(events(kind, Options(rate=1000.0, **LATE), 0, 10 * BLOCK))
    behind = np.maximum.accumulate(at) - at
    assert behind.max() <= LATE["late_max"]
    assert behind.max() > 0.9 * LATE["late_max"]
    assert 0.25 < (behind > 10_000).mean() < 0.31


def test_rate_is_events_per_second_of_event_time():
    options = Options(rate=250.0, start=0)
    at = micros(events("payments", options, 0, 2 * BLOCK))
    assert at[0] < SECOND / 250
    assert at[-1] == pytest.approx(2 * BLOCK / 250 * SECOND, abs=SECOND / 250)


def test_skew_is_zipf():
    cards = events("payments", Options(keys=100, skew=1.0), 0, 50 * BLOCK).column("card")
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(cards).to_pylist()}
    assert len(counts) == 100
    assert counts["card-00"] / counts["card-09"] == pytest.approx(10, rel=0.1)
    even = pc.value_counts(events("payments", Options(keys=10, skew=0.0), 0, 50 * BLOCK).column("card")).to_pylist()
    assert min(e["counts"] for e in even) / max(e["counts"] for e in even) > 0.95


def test_amounts_are_whole_cents():
    amounts = events("payments", Options(), 0, BLOCK).column("amount").to_numpy()
    assert (amounts > 0).all()
    assert (np.round(amounts, 2) == amounts).all()


def test_ids_count_the_rows():
    assert events("payments", Options(), BLOCK - 2, 4).column("id").to_pylist() == list(range(BLOCK - 2, BLOCK + 2))


def test_items_go_from_shelf_to_checkout_to_exit_in_event_time():
    options = Options(keys=10_000_000, **LATE)
    rows = sorted(events("rfid", options, 0, BLOCK).to_pylist(), key=lambda r: r["at"])
    visits: dict[str, list[str]] = {}
    for row in rows:
        visits.setdefault(row["id"], []).append(row["kind"])
    ways = {tuple(v) for v in visits.values()}
    assert {("shelf", "checkout", "exit"), ("shelf", "shelf", "exit")} <= ways  # the second is a theft
    honest = sum(v == ["shelf", "checkout", "exit"] for v in visits.values())
    assert honest > 0.9 * len(visits)


def test_prices_walk():
    ticks = events("ticks", Options(keys=3), 0, 100 * BLOCK).to_pylist()
    prices = np.array([t["price"] for t in sorted(ticks, key=lambda t: t["at"]) if t["symbol"] == "SYM1"])
    moves = np.abs(np.diff(np.log(prices)))
    assert moves.max() < 0.01  # no jump, also where one block meets the next
    assert prices.max() / prices.min() > 1.02


def test_the_walk_is_entered_anywhere_and_moves_by_one_a_block():
    path = np.array([boundary(5, np.arange(4), b) for b in range(1000, 1400)])
    assert path.shape == (400, 4)
    assert np.diff(path, axis=0).std() == pytest.approx(1.0, rel=0.1)


def test_gaussian_has_mean_zero_and_variance_one():
    values = np.concatenate([gaussian(words(1, b, 8)) for b in range(8)])
    assert values.mean() == pytest.approx(0, abs=0.01)
    assert values.std() == pytest.approx(1, abs=0.01)


def test_the_bytes_of_a_seed_never_change():
    """Data that was generated once must be the same in every later version: a golden row per kind."""
    got = {kind: events(kind, default_options(kind), 5000, 1).to_pylist()[0] for kind in KINDS}
    assert {kind: tuple(map(str, row.values())) for kind, row in got.items()} == GOLDEN


GOLDEN = {
    "payments": ("5000", "card-0054", "shop-020", "18.99", "2026-01-01 00:00:05.000067+00:00"),
    "rfid": ("shelf", "item-21673", "30", "2026-01-01 00:00:50.000670+00:00"),
    "ticks": ("SYM01", "99.76", "48", "2026-01-01 00:00:05.000067+00:00"),
    "sequence": ("E", "2026-01-01 01:23:20.067085+00:00", "2026-01-01 01:23:20.067085+00:00", "5000", "24", "None"),
}


def test_an_unknown_kind_names_those_there_are():
    with pytest.raises(QueryError, match="payments, rfid, ticks, sequence"):
        events("payment", Options(), 0, 1)
