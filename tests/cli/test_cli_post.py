"""`headrace post` and `headrace token`, against a front end that listens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.main import app

SERVE = Path(__file__).parents[1] / "serve"


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(SERVE), str(SERVE / "http")])
    from http_world import World

    made = World(tmp_path, tokens={"till": "post"})
    yield made
    made.close()


def test_events_are_posted_and_replies_printed(world, monkeypatch):
    from http_world import payment

    monkeypatch.setenv("HEADRACE_TOKEN", world.tokens["till"])
    lines = [json.dumps(payment(n, at=n)) for n in range(3)]
    got = CliRunner().invoke(app, ["post", world.server.url, "payments"], input="\n".join(lines))
    assert got.exit_code == 0, got.output
    assert [json.loads(line)["answers"]["card_profile"]["n"] for line in got.stdout.splitlines()] == [1, 2, 3]
    assert "3 events, 3 answered" in got.stderr


def test_what_is_rejected_is_printed_and_makes_the_command_fail(world, tmp_path):
    (tmp_path / "token").write_text(world.tokens["till"] + "\n")
    command = ["post", world.server.url, "payments", "--token-file", str(tmp_path / "token")]
    got = CliRunner().invoke(app, command, input='{"id": "x"}\n')
    assert got.exit_code == 1
    assert "column 'id'" in json.loads(got.stdout)["rejected"]["reason"]
    assert "1 rejected" in got.stderr
    got = CliRunner().invoke(app, ["post", world.server.url, "payments"], input="{}\n", env={"HEADRACE_TOKEN": "none"})
    assert got.exit_code == 1
    assert "unauthorized" in got.stderr


def test_tokens_are_made_listed_and_removed(tmp_path):
    def token(*words):
        return CliRunner().invoke(app, ["token", *words, "--tokens", str(tmp_path / "tokens.json")])

    made = token("add", "till", "--scope", "post", "--scope", "read")
    assert made.exit_code == 0
    assert made.stdout.startswith("hr_")
    assert token("list").stdout.split("\t")[:2] == ["till", "post read"]
    assert token("add", "till", "--scope", "post").exit_code == 2
    assert token("remove", "till").exit_code == 0
    assert token("list").stdout == ""
    assert token("add").exit_code == 2
