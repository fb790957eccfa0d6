import os
import pty
import select
import subprocess
import sys
import time

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from headrace.cli.shell.prompt import Names, history, prompt
from headrace.cli.shell.session import Session
from headrace.errors import DataError
from headrace.sql.errors import Text

CREATE = "CREATE STREAM payments SOURCE GENERATE('payments', rows => 10) TIMESTAMP BY at DELAY 0;\n"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def asked():
    """The scripts that a session runs."""
    return []


@pytest.fixture
def session(asked):
    def run(script):
        asked.append(script)
        return False

    return Session(run)


def say(session, *texts):
    return [session.answer(Text(text, "shell")) for text in texts]


def names(script):
    return [query.name for query in script.queries]


def test_declarations_are_kept_and_queries_run(session, asked):
    say(session, CREATE, "CREATE STREAM large AS SELECT card, amount FROM payments WHERE amount > 9;")
    assert asked == []
    say(session, "SELECT card FROM large; SELECT id FROM payments INTO ids;", "SELECT COUNT(*) AS n FROM large [ROWS 3];")
    assert [names(script) for script in asked] == [["query1"], ["ids"], ["query1"]]
    assert [q.node.schema.names for script in asked for q in script.queries] == [("card",), ("id",), ("n",)]


def test_a_statement_that_is_wrong_is_not_kept(session, asked):
    for wrong in ("CREATE STREAM s (a INT) SOURCE FILE('s.csv') TIMESTAMP BY b;", "SELECT a FROM s;"):
        with pytest.raises(Exception, match=r"shell:1:"):
            say(session, wrong)
    say(session, "CREATE STREAM s (a INT) SOURCE FILE('s.csv');", "SELECT a FROM s;")
    assert len(asked) == 1


def test_an_error_is_shown_where_it_was_typed(session):
    say(session, CREATE)
    with pytest.raises(Exception, match="amuont") as caught:
        say(session, "SELECT id FROM payments;\n  SELECT amuont\nFROM payments;")
    assert str(caught.value).startswith("shell:2:10: column 'amuont' does not exist")
    assert "    SELECT amuont\n           ^^^^^^" in str(caught.value)


def test_comments_and_semicolons_in_strings_end_nothing(session, asked):
    say(session, CREATE, "SELECT id -- ;\nFROM payments WHERE card = ';' /* ; */;; -- done")
    assert len(asked) == 1


def test_commands_are_read_from_standard_input_without_a_terminal(fake, engine, headrace):
    engine.handle = fake.handle([[fake.rows("query1", n=[1, 2])], [fake.progress()]])
    result = headrace("shell", input=CREATE + "SELECT COUNT(*) AS n\nFROM payments [ROWS 3]")
    assert result.exit_code == 0
    assert result.stdout == '{"n": 1}\n{"n": 2}\n'
    assert "10 rows in" in result.stderr
    ((script, checkpoint, follow, verbose),) = engine.calls
    assert names(script) == ["query1"]
    assert (checkpoint, follow, verbose) == (None, False, False)


def test_options_reach_the_engine(engine, headrace):
    headrace("shell", "--follow", "--verbose", input=CREATE + "SELECT id FROM payments;")
    assert [call[1:] for call in engine.calls] == [(None, True, True)]


def test_the_first_error_ends_what_is_read(engine, headrace):
    result = headrace("shell", input=CREATE + "SELECT nothing\nFROM payments;\nSELECT id FROM payments;")
    assert result.exit_code == 2
    assert "standard input:2:8: column 'nothing' does not exist" in result.stderr
    assert "  SELECT nothing\n         ^^^^^^^" in result.stderr
    assert engine.calls == []


def test_a_run_that_fails_or_is_stopped_ends_what_is_read(fake, engine, headrace):
    engine.handle = fake.handle([[]], DataError("no such file"))
    result = headrace("shell", input=CREATE + "SELECT id FROM payments;")
    assert (result.exit_code, "no such file" in result.stderr) == (1, True)
    engine.handle = fake.handle([[], KeyboardInterrupt()])
    assert headrace("shell", input=CREATE + "SELECT id FROM payments; SELECT 1;").exit_code == 130


def test_help_and_exit(engine, headrace):
    result = headrace("shell", input=CREATE + "Help; HELP;\nexit\nSELECT wrong;")
    assert result.exit_code == 0
    assert "Ctrl-C" in result.stdout
    assert "payments (id BIGINT, card STRING" in result.stdout


def complete(session, text):
    found = Names(session).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_completion_of_names_and_keywords(session):
    say(session, "CREATE SCHEMA pair (a INT, b INT);", CREATE, "CREATE STREAM large AS SELECT card AS c2 FROM payments;")
    assert complete(session, "SELECT * FROM ") == ["pair", "payments", "large"]
    assert complete(session, "SELECT * FROM pay") == ["payments"]
    assert complete(session, "EVENT SEQ(pay") == ["payments"]
    assert complete(session, "EVENT SEQ(payments p, !(la") == ["large"]
    assert "RETURN" in complete(session, "EVENT SEQ(payments p) WITHIN 1 HOUR ret")
    assert complete(session, "SELECT payments.a") == ["amount", "at"]
    assert complete(session, "SELECT large.") == ["c2"]
    assert complete(session, "SELECT am") == ["amount"]
    assert "GROUP BY" in complete(session, "SELECT card FROM payments gr")
    assert "CREATE STREAM" in complete(session, "cr")
    assert complete(session, "SELECT ") == []


@pytest.mark.parametrize("text", ["SELECT 'fr", "SELECT `fr", "SELECT a /* fr", "SELECT a -- fr"])
def test_nothing_is_completed_inside_quotes_and_comments(session, text):
    assert complete(session, text) == []


def typed(session, keys):
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        return [text.sql for text in prompt(session, pipe, DummyOutput())]


def test_a_statement_may_take_several_lines(session):
    found = typed(session, "SELECT id\rFROM payments\r;\rhelp\r\r\x04")
    assert [" ".join(text.split()) for text in found] == ["SELECT id FROM payments ;", "help", ""]


def test_ctrl_c_at_the_prompt_forgets_what_was_typed(session):
    assert typed(session, "SELECT nonsense\x03exit\r\x04") == ["exit"]


def test_history_is_kept_for_the_next_session(session, state):
    typed(session, "SELECT 1;\r\x04")
    assert list(history().load_history_strings()) == ["SELECT 1;"]
    assert (state / "headrace" / "history").stat().st_mode & 0o077 == 0


def test_a_state_directory_that_cannot_be_written_is_no_error(state):
    state.write_text("a file")
    history().append_string("SELECT 1;")


PLAYED_BACK = """
import sys, time, types
import pyarrow as pa
from headrace.runs.events import RowsEvent
from headrace.cli import main

class Handle:
    done, error, polls = False, None, 0
    def poll(self, timeout_s):
        time.sleep(timeout_s)
        self.polls += 1
        return [RowsEvent("query1", ("n",), pa.record_batch({"n": [12345]}))] if self.polls == 1 else []
    def stop(self):
        pass

engine = types.ModuleType("headrace.spark.run")
engine.start_script = lambda *arguments, **more: Handle()
sys.modules["headrace.spark.run"] = engine
sys.argv = ["headrace", "shell"]
main.main()
"""


class Terminal:
    """A process at the other end of a terminal."""

    def __init__(self, code):
        self.near, far = pty.openpty()
        environment = os.environ | {"TERM": "dumb", "COLUMNS": "120", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=far, stdout=far, stderr=far, start_new_session=True, env=environment,
            preexec_fn=_own_terminal,
        )  # fmt: skip
        os.close(far)
        self.seen = ""

    def type(self, keys):
        os.write(self.near, keys.encode())

    def wait_for(self, text, seconds=30):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.near], [], [], 0.2)[0]:
                self.seen += os.read(self.near, 65536).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]


def _own_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_session_at_a_terminal():
    terminal = Terminal(PLAYED_BACK)
    try:
        terminal.wait_for("headrace>")
        terminal.type(CREATE.replace("\n", "\r"))
        terminal.wait_for("payments (id BIGINT")
        terminal.type("SELECT nothing FROM payments;\r")
        terminal.wait_for("column 'nothing' does not exist")
        terminal.type("SELECT COUNT(*) AS n FROM payments [ROWS 3];\r")
        terminal.wait_for("12345")
        terminal.type("\x03")
        terminal.wait_for("stopped")
        terminal.wait_for("headrace>")
        terminal.type("exit\r")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.near)
