import json
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headrace.errors import DataError, HeadraceError, InternalError, QueryError, StateError

AT = pa.array([datetime(2026, 3, 2, 12, 0, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))


def test_rows_are_json_lines_on_standard_output_and_the_rest_is_not(fake, engine, headrace):
    engine.handle = fake.handle(
        [[fake.rows(_op=["+", "-"], card=["a", "b"], n=[5, None])], [fake.progress(late=2)], [fake.progress(1)]]
    )
    result = headrace("run", "x.cql")
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"_op": "+", "card": "a", "n": 5},
        {"_op": "-", "card": "b", "n": None},
    ]
    assert "20 rows in, 6 out, 2 late, 0 rejected; 2 batches" in result.stderr


def test_events_of_the_last_poll_are_not_lost(fake, engine, headrace):
    class EndsBetween(fake.handle):
        """Ends after `done` was asked and before `poll`."""

        asked = 0

        @property
        def done(self):
            self.asked += 1
            return self.asked > 1

        def poll(self, timeout_s):
            return [fake.rows(n=[self.asked])] if self.asked < 3 else []

    engine.handle = EndsBetween([])
    assert headrace("run", "x.cql").stdout == '{"n": 1}\n{"n": 2}\n'


def test_quiet_says_nothing(fake, engine, headrace):
    engine.handle = fake.handle([[fake.progress()]])
    result = headrace("run", "x.cql", "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_options_reach_the_engine(engine, headrace):
    headrace("run", "x.cql", "--follow", "--checkpoint", "state", "--verbose")
    assert [call[1:] for call in engine.calls] == [("state", True, True)]
    headrace("run", "x.cql")
    assert engine.calls[1][1:] == (None, False, False)


def test_rows_say_their_query_where_several_print(fake, engine, headrace, monkeypatch):
    monkeypatch.setattr("headrace.cli.run.command.load", lambda path: fake.script("a", "b"))
    engine.handle = fake.handle([[fake.rows("b", n=[1])]])
    assert headrace("run", "x.cql").stdout == '{"_query": "b", "n": 1}\n'


@pytest.mark.parametrize(
    ("error", "code", "title"),
    [
        (QueryError("no such column", where="x.cql:3:8", hint="use card"), 2, "this query cannot run"),
        (DataError("no such file"), 1, "the data"),
        (StateError("of another query"), 1, "checkpoint"),
        (InternalError("broken"), 1, "a bug in Headrace"),
        (HeadraceError("odd"), 1, "error"),
        (ValueError("surprise"), 1, "unexpected error"),
        (FileNotFoundError(2, "No such file or directory", "/there"), 1, "/there: No such file or directory"),
    ],
)
def test_errors_are_messages_with_an_exit_code(fake, engine, headrace, error, code, title):
    engine.handle = fake.handle([[]], error)
    result = headrace("run", "x.cql")
    assert result.exit_code == code
    assert result.stdout == ""
    assert title in result.stderr
    assert "Traceback" not in result.stderr
    for part in (getattr(error, "where", None), getattr(error, "hint", None)):
        assert part is None or part in result.stderr


def test_brackets_in_a_message_are_not_markup(engine, headrace):
    engine.handle = QueryError("expected ] after [RANGE 5 [bold]MINUTES")
    assert "expected ] after [RANGE 5 [bold]MINUTES" in headrace("run", "x.cql").stderr


def test_a_traceback_only_when_asked_for(engine, headrace):
    engine.handle = ValueError("surprise")
    assert "Traceback" not in headrace("run", "x.cql").stderr
    assert "Traceback" in headrace("run", "x.cql", "--verbose").stderr


@pytest.mark.parametrize("checkpoint", [None, "state"])
def test_ctrl_c_stops_the_run_and_says_how_to_go_on(fake, engine, headrace, checkpoint):
    engine.handle = fake.handle([[fake.rows(n=[1])], KeyboardInterrupt()])
    result = headrace("run", "x.cql", *(["--checkpoint", checkpoint] if checkpoint else []))
    assert result.exit_code == 130
    assert engine.handle.stopped
    assert result.stdout == '{"n": 1}\n'
    assert ("headrace run x.cql --checkpoint state" if checkpoint else "without --checkpoint") in result.stderr


def test_a_failing_printer_does_not_leave_the_run_running(fake, engine, headrace, monkeypatch):
    def broken(self, event):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headrace.cli.run.rows.JsonLines.show", broken)
    engine.handle = fake.handle([[fake.rows(n=[1])]])
    result = headrace("run", "x.cql")
    assert result.exit_code == 1
    assert engine.handle.stopped
    assert "No space left on device" in result.stderr


def test_a_script_that_is_not_there_names_those_that_are(headrace, tmp_path):
    (tmp_path / "fraud.cql").write_text("")
    result = headrace("run", tmp_path / "fruad.cql")
    assert result.exit_code == 2
    assert "there is no such script" in result.stderr
    assert "fraud.cql" in result.stderr
    assert headrace("run", tmp_path).exit_code == 2
    assert "nothing in it" in headrace("run", tmp_path / "fraud.cql").stderr


def test_time_is_written_as_an_instant(fake, engine, headrace):
    engine.handle = fake.handle([[fake.rows(at=AT)]])
    assert headrace("run", "x.cql").stdout == '{"at": "2026-03-02T12:00:01Z"}\n'


def test_buckets_are_handed_on(engine, headrace):
    headrace("run", "x.cql")
    assert engine.buckets is None
    headrace("run", "x.cql", "--buckets", 5)
    assert engine.buckets == 5
    assert headrace("run", "x.cql", "--buckets", 0).exit_code == 2


def test_queries_that_begin_from_now_or_are_filled_are_handed_on(engine, headrace):
    headrace("run", "x.cql", "--from-now", "a", "--from-now", "b", "--backfill", "c")
    assert engine.changed == (("a", "b"), ("c",))


PLAYED_BACK = """
import sys, time, types
import pyarrow as pa
from headrace.runs.events import RowsEvent
from headrace.cli import main
from headrace.cli.run import command as run
from headrace.plan.query import Script

class Handle:
    done, error, polls = False, None, 0
    def poll(self, timeout_s):
        time.sleep(timeout_s)
        self.polls += 1
        return [RowsEvent("q", ("n",), pa.record_batch({"n": [1]}))] if self.polls == 1 else []
    def stop(self):
        print("stopped", file=sys.stderr)

import headrace.spark.jvm.process
headrace.spark.jvm.process.begin = lambda: None
engine = types.ModuleType("headrace.spark.run")
engine.start_script = lambda *arguments, **more: Handle()
sys.modules["headrace.spark.run"] = engine
run.load = lambda path: Script(())
sys.argv = ["headrace", "run", "x.cql", "--follow", "--checkpoint", "state"]
main.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_in_a_process_of_its_own(number, code):
    process = subprocess.Popen([sys.executable, "-c", PLAYED_BACK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == '{"n": 1}\n'
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == code
    assert out == ""
    assert "stopped" in err
    assert "go on with: headrace run x.cql --checkpoint state --follow" in err
    assert "Traceback" not in err
