"""Every block of the documentation is held against the code.

A fence says what it is by its first line:

    ```sql                 must parse (after the page's hidden SQL)
    ```sql error           must be refused; a ```text block right after it is the message, word for word
    ```ebnf                productions (see test_docs_grammar.py)
    ```sql file=x.cql      must parse, and is also written to a file for the commands of the page
    ```csv file=x.csv      is written to a file
    ```text explain=x.cql  is a part of what explain says of that script: a line, and all that stands below it, indented further
    ```python              must compile
    ```python run          is run; blocks of a page share their names
    ```python spark        is run where there is Spark, with `spark` in its names
    ```console run         commands after `$`, run in order; the lines below must be what they print on standard output
    ```console spark       the same, where there is Spark
    ```console             is not run: set-up of a machine, and commands that never end

Hidden set-up stands in HTML comments: `<!-- sql setup`, `<!-- python setup`, `<!-- python spark setup`, `<!-- file x.csv`,
each on a line of its own, and `-->`. SQL set-up holds for the blocks below it, up to the next.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.main import app
from headrace.errors import QueryError
from headrace.plan.nodes import Scan

ROOT = Path(__file__).resolve().parents[1]
TOP = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")]
PAGES = [*TOP, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "decisions").glob("*.md"))]
_BLOCK = re.compile(
    r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$|^<!-- (?P<hidden>(?:sql|python|file)[^\n]*)\n(?P<code>.*?)^-->$", re.M | re.S
)
_PATH = re.compile(r"`([\w*/-]+(?:/|\.py|\.md|\.cql))`")
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: tuple[str, ...]
    body: str
    sql: str = ""  # hidden SQL in force

    @property
    def kind(self) -> str:
        return " ".join(w for w in self.info if "=" not in w)

    @property
    def file(self) -> str | None:
        return self.named("file")

    def named(self, what: str) -> str | None:
        return next((w.removeprefix(f"{what}=") for w in self.info if w.startswith(f"{what}=")), None)

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found, sql = [], ""
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        hidden = match["hidden"]
        if hidden is None:
            found.append(Block(page, line, tuple(match["info"].split()), match["body"], sql))
        elif hidden == "sql setup":
            sql = match["code"]
        elif hidden.startswith("file "):
            found.append(Block(page, line, ("hidden", f"file={hidden[5:]}"), match["code"]))
        else:
            found.append(Block(page, line, ("python", "spark" if "spark" in hidden else "run"), match["code"]))
    return found


ALL = [block for page in PAGES if page.exists() for block in blocks(page)]


def of(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", [b for b in ALL if b.kind in kinds], ids=str)


def parse(block: Block):
    """Hidden streams are handed in, not put in front, so that places in messages are those of the block."""
    from headrace.sql import parse_script

    hidden = parse_script(block.sql, "set-up").streams if block.sql else ()
    return parse_script(block.body, "script", streams={stream.name: Scan(stream) for stream in hidden})


@of("sql")
def test_sql_parses(block):
    parse(block)


@of("sql error")
def test_sql_that_is_refused_is_refused(block):
    with pytest.raises(QueryError) as caught:
        parse(block)
    after = next((b for a, b in pairwise(ALL) if a == block), None)
    if after and after.page == block.page and after.kind == "text":
        assert str(caught.value) == after.body.rstrip("\n")


@pytest.mark.parametrize("block", [b for b in ALL if b.named("explain")], ids=str)
def test_what_explain_says_is_shown_as_it_is(block):
    from headrace.sql import parse_script
    from headrace.stages.explain import explain_script

    (script,) = (b.body for b in ALL if b.page == block.page and b.file == block.named("explain"))
    said = explain_script(parse_script(script)).splitlines()
    assert block.body.splitlines() == part(said, block.body.splitlines()[0])


def part(lines: list[str], first: str) -> list[str]:
    """A line and what stands below it, indented further."""

    def indent(line: str) -> int:
        return len(line) - len(line.lstrip())

    below = lines[lines.index(first) + 1 :]
    return [first, *takewhile(lambda line: indent(line) > indent(first), below)]


def test_a_part_ends_with_its_last_line():
    assert part(["a", "  b", "    c", "  d", "", "e"], "a") == ["a", "  b", "    c", "  d"]
    assert part(["a", "  b", "    c", "  d", "", "e"], "  b") == ["  b", "    c"]
    assert part(["a", "  b", "    c", "  d", "", "e"], "e") == ["e"]


@of("python", "python run", "python spark")
def test_python_compiles(block):
    compile(block.body, str(block), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page_runs(page, tmp_path, monkeypatch):
    run_page(page, tmp_path, monkeypatch, {"run"}, {})


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.page == p and "spark" in b.info for b in ALL)], ids=lambda p: p.name)
def test_page_runs_on_spark(page, tmp_path, monkeypatch, spark):
    run_page(page, tmp_path, monkeypatch, {"run", "spark"}, {"spark": spark})


def run_page(page, folder, monkeypatch, modes, names):
    """Run the blocks of a page in order, in a folder of its own."""
    monkeypatch.chdir(folder)
    for block in (b for b in ALL if b.page == page):
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.body, encoding="utf-8")
        match block.kind.split():
            case ["python", mode] if mode in modes:
                exec(compile(block.body, str(block), "exec"), names)
            case ["console", mode] if mode in modes:
                say = output if page.name == "README.md" or "spark" not in names else output_here
                for command, expected in commands(block.body):
                    assert say(command) == expected, f"{block}: {command}"


def commands(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the lines printed below it."""
    return [(part.partition("\n")[0], part.partition("\n")[2].strip("\n")) for part in re.split(r"^\$ ", body, flags=re.M)[1:]]


def output(command: str) -> str:
    """Standard output of a `headrace` command, as a script would see it."""
    program, *arguments = shlex.split(command)
    assert program == "headrace", f"only headrace commands are run, not {program}"
    line = [sys.executable, "-m", "headrace.cli", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "120"})
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) <= 1, f"more than a summary on standard error:\n{done.stderr}"
    return done.stdout.strip("\n")


def output_here(command: str) -> str:
    """The same in this process, with the session that is there."""
    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout.strip("\n")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=lambda p: p.name)
def test_prose_is_wrapped(page):
    prose = re.sub(r"^(```+)[^\n]*\n.*?^\1$|^<!--.*?^-->$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert [line for line in prose.splitlines() if len(line) > 120 and not line.lstrip().startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    missing = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "docs"], ids=lambda p: p.name)
def test_files_that_are_named_exist(page):
    """`plan/nodes.py`, `sql/`, or the bare name of a file of ours. (Pages for users name files of users.)"""
    source = ROOT / "src" / "headrace"
    named = set(_PATH.findall(page.read_text(encoding="utf-8"))) - {"profiles/", "late/"}
    missing = [n for n in named if not any(ROOT.glob(n)) and not any(source.rglob(n))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))) <= targets


def test_every_folder_has_its_place_in_the_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = [p.name for p in (ROOT / "src" / "headrace").iterdir() if p.is_dir() and p.name != "__pycache__"]
    assert [f for f in folders if f"`{f}/`" not in text] == []


def test_the_kinds_of_blocks_are_known():
    known = {
        "sql",
        "sql error",
        "csv",
        "python",
        "python run",
        "python spark",
        "console",
        "console run",
        "console spark",
        "text",
        "ebnf",
        "hidden",
    }
    assert {b.kind for b in ALL} <= known


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.cql")), ids=lambda p: p.name)
def test_examples_parse(path):
    from headrace.sql import parse_script

    assert parse_script(path.read_text(encoding="utf-8"), path.name).queries


def with_doctests() -> list[str]:
    sources = (p for p in sorted((ROOT / "src" / "headrace").rglob("*.py")) if p.parent.name != "spark")
    return [
        ".".join(p.relative_to(ROOT / "src").with_suffix("").parts) for p in sources if ">>>" in p.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("module", with_doctests())
def test_examples_in_docstrings(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert failed == 0
    assert tried > 0
