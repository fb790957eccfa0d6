import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from headrace.cli.bench import benchmarks, find_folder
from headrace.errors import QueryError

COMMANDS = ["run", "shell", "check", "explain", "fmt", "generate", "serve", "post", "token", "demo", "bench"]


def test_help_teaches(headrace):
    result = headrace("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert command in result.stdout
    assert "CREATE STREAM" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(headrace, command):
    result = headrace(command, "--help")
    assert result.exit_code == 0
    assert f"headrace {command}" in result.stdout or "headrace run out/demo/fraud.cql" in result.stdout


def test_version(headrace):
    assert headrace("--version").stdout.startswith("headrace 0.")


def test_an_unknown_command_is_a_misuse(headrace):
    assert headrace("rnu").exit_code == 2


def test_the_command_line_starts_without_spark():
    """Help must come at once: importing pyspark takes a second, pandas another."""
    heavy = ("pyspark", "pandas", "matplotlib.pyplot", "numba")
    code = f"import sys, headrace.cli.commands as c; c.command_line(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_script_is_checked_without_what_runs_it(tmp_path):
    """A check takes a second at most, so it imports neither arrays nor what other commands need."""
    (tmp_path / "x.cql").write_text(
        "CREATE STREAM s (k STRING, at TIMESTAMP) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 MINUTE; "
        "SELECT k, COUNT(*) AS n FROM s [RANGE 5 MINUTES] GROUP BY k;"
    )
    heavy = ("pyspark", "pandas", "pyarrow", "numpy", "numba", "matplotlib", "prompt_toolkit", "headrace.cli.demo.fraud")
    code = (
        f"import sys; sys.argv = ['headrace', 'check', {str(tmp_path / 'x.cql')!r}]\n"
        "from headrace.cli.main import main\n"
        "try: main()\n"
        f"except SystemExit as end: print([m for m in {heavy} if m in sys.modules], end.code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ok: 1 query over 1 stream" in done.stdout
    assert done.stderr.strip() == "[] 0"


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m headrace.cli generate payments --rows 300000 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "id,card,merchant,amount,at\n"
    assert done.stderr == ""


def checkout(folder: Path, **files: str) -> Path:
    (folder / "benchmarks").mkdir()
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        (folder / "benchmarks" / f"{name}.py").write_text(text)
    return folder


def test_benchmarks_are_those_that_can_be_run(tmp_path):
    folder = checkout(tmp_path, sliding="if __name__ == '__main__': pass", helper="x = 1")
    (folder / "deep").mkdir()
    assert list(benchmarks(find_folder(folder / "deep"))) == ["sliding"]


def test_no_checkout_no_benchmarks(tmp_path):
    with pytest.raises(QueryError, match="no benchmarks here"):
        find_folder(tmp_path)


def test_bench_hands_on_arguments_and_exit_code(headrace, tmp_path, monkeypatch):
    text = "import sys\nif __name__ == '__main__':\n    open('seen', 'w').write(' '.join(sys.argv[1:]))\n    sys.exit(3)"
    monkeypatch.chdir(checkout(tmp_path, sliding=text))
    assert headrace("bench").stdout == "sliding\n"
    assert headrace("bench", "sliding", "--json", "--rows", "5").exit_code == 3
    assert (tmp_path / "seen").read_text() == "--json --rows 5"
    assert "Did you mean 'sliding'" in headrace("bench", "sldiing").stderr


SCRIPT = """
CREATE STREAM payments SOURCE GENERATE('payments', rows => 10{option}) TIMESTAMP BY at DELAY 1 SECOND;
SELECT id, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card EMIT FINAL INTO counts;
SELECT * FROM rejected(payments);
"""


def test_check_tells_what_every_query_gives(headrace):
    result = headrace("check", "-", input=SCRIPT.format(option=""))
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert ["counts"] in lines
    assert ["columns", "id BIGINT, n BIGINT"] in lines
    assert ["emit", "FINAL"] in lines
    assert ["into", "CONSOLE"] in lines
    assert result.stdout.endswith("ok: 2 queries over 1 stream\n")


def test_check_shows_the_place_of_an_error(headrace, tmp_path):
    path = tmp_path / "bad.cql"
    path.write_text("SELECT x\nFROM nowhere;")
    result = headrace("check", path)
    assert result.exit_code == 2
    assert f"{path}:2:6" in result.stderr
    assert "  FROM nowhere;\n       ^^^^^^^" in result.stderr


def test_check_finds_a_bad_option_of_a_generator(headrace):
    result = headrace("check", "-", input=SCRIPT.format(option=", rate => 'fast'"))
    assert result.exit_code == 2
    assert "option 'rate' cannot be 'fast'" in result.stderr


def test_a_script_that_asks_nothing_is_refused(headrace):
    result = headrace("check", "-", input=SCRIPT.splitlines()[1].format(option=""))
    assert result.exit_code == 2
    assert "add a SELECT" in result.stderr


def test_explain_prints_the_plan(headrace, monkeypatch):
    explain = ModuleType("headrace.stages.explain")
    explain.explain_script = lambda script: f"plan [of] {len(script.queries)} queries"
    monkeypatch.setitem(sys.modules, "headrace.stages.explain", explain)
    assert headrace("explain", "-", input=SCRIPT.format(option="")).stdout == "plan [of] 2 queries\n"
