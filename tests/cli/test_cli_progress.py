import io

from rich.console import Console

from headrace.cli.run.progress import Progress, Totals, span


def test_queries_that_are_not_full_yet_are_named(fake):
    totals = Totals()
    totals.add(fake.progress(0, filling=("out/daily/", "weekly.csv")))
    assert "filling daily, weekly  lag" in totals.line().plain
    assert totals.summary().endswith("; not full yet: daily, weekly")
    totals.add(fake.progress(1))
    assert "full" not in totals.summary()


def test_the_line_shows_everything_that_is_promised(fake):
    totals = Totals()
    assert "starting" in totals.line().plain
    totals.add(fake.progress(0, rows_in=1000, late=1, rejected=2, frontier_lag_s=None))
    assert "lag -" in totals.line().plain
    totals.add(fake.progress(1, rows_in=500, frontier_lag_s=75.0, batch_ms=1234.5, cache_hits=9, cache_misses=1))
    line = totals.line().plain.split()
    assert " ".join(line) == "in 1,500 out 6 late 1 rejected 2 lag 1 min 15 s batch 1 took 1,234 ms cache 90.0%"


def test_punctuation_is_shown_where_there_is_some(fake):
    totals = Totals()
    totals.add(fake.progress(0, rows_in=12))
    assert "punctuation" not in totals.line().plain + totals.summary()
    totals.add(fake.progress(1, rows_in=12, punctuation=3))
    assert "rejected 0  punctuation 3  lag" in totals.line().plain
    assert totals.summary().startswith("24 rows in, 6 out, 0 late, 0 rejected, 3 punctuation; 2 batches")


def test_rows_printed_beside_the_live_line_stay_on_the_screen(monkeypatch):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=30)
    monkeypatch.setattr("headrace.cli.run.progress.err", lambda: console)
    shown = Progress(quiet=False)
    with shown.shown():
        assert shown.live is not None
        with shown.aside():
            assert shown.live is None
            file.write("ROW\n")
        assert shown.live is not None
        shown.live.refresh()
    assert shown.live is None
    after = file.getvalue().partition("ROW\n")[2]
    assert after.index("starting Spark") < after.index("\x1b[1A")  # the cursor goes up only to wipe out the live line itself


def test_nothing_live_when_quiet_or_piped(monkeypatch):
    assert not Progress(quiet=False).visible
    monkeypatch.setattr("headrace.cli.run.progress.err", lambda: Console(file=io.StringIO(), force_terminal=True))
    assert Progress(quiet=False).visible
    assert not Progress(quiet=True).visible


def test_spans():
    assert [span(s) for s in (0, 59.94, 60, 3599, 3600 * 25)] == ["0.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "25 h 0 min"]
