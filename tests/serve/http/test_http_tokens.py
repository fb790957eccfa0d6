"""The file of tokens."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.errors import DataError, QueryError
from headrace.serve.http.tokens import ANYBODY, Doorkeeper, add_token, read_tokens, remove_token


def test_a_token_is_nowhere_but_with_its_owner(tmp_path):
    file = tmp_path / "tokens.json"
    text = add_token(file, "till", ["post"])
    assert len(text) > 40
    assert text not in file.read_text()
    assert text.removeprefix("hr_") not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert [(t.name, t.scopes) for t in read_tokens(file)] == [("till", {"post"})]
    assert Doorkeeper(file, print).who(f"Bearer {text}").name == "till"
    assert Doorkeeper(file, print).who(f"bearer  {text} ").name == "till"


def test_what_cannot_be_is_refused(tmp_path):
    file = tmp_path / "tokens.json"
    add_token(file, "till", ["post"])
    for name, scopes, words in (
        ("till", ["read"], "already"),
        ("b", ["red"], "Did you mean 'read'"),
        ("c", [], "without a scope"),
    ):
        with pytest.raises(QueryError, match=words):
            add_token(file, name, scopes)
    with pytest.raises(QueryError, match="'none' does not exist"):
        remove_token(file, "none")
    assert len(read_tokens(file)) == 1


def test_tokens_that_are_made_at_once_are_all_there(tmp_path):
    file = tmp_path / "tokens.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add_token(file, f"t{n}", ["read"]), range(40)))
    assert {t.name for t in read_tokens(file)} == {f"t{n}" for n in range(40)}
    assert [p.name for p in tmp_path.iterdir()] == ["tokens.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"tokens": [{}]}', '{"tokens": [{"name": "a", "sha256": "xy", "scopes": [], "made": ""}]}']
)
def test_a_damaged_file_lets_nobody_in(tmp_path, text):
    file, said, now = tmp_path / "tokens.json", [], [0.0]
    token = add_token(file, "till", ["post"])
    door = Doorkeeper(file, said.append, lambda: now[0])
    assert door.who(f"Bearer {token}")
    file.write_text(text)
    now[0] = 5.0
    assert door.who(f"Bearer {token}") is None
    assert door.who(None) is None
    assert "is not a file of tokens" in said[0]
    with pytest.raises(DataError, match="not a file of tokens"):
        Doorkeeper(file, print)


def test_the_first_token_closes_an_open_door_for_good(tmp_path):
    file, now = tmp_path / "tokens.json", [0.0]
    door = Doorkeeper(file, print, lambda: now[0])
    assert door.who(None) is ANYBODY
    add_token(file, "till", ["post"])
    now[0] = 5.0
    assert door.who(None) is None
    assert not door.knows(ANYBODY)
    remove_token(file, "till")
    now[0] = 10.0
    assert door.who(None) is None


def test_the_file_says_what_it_is(tmp_path):
    add_token(tmp_path / "deep" / "tokens.json", "till", ["post", "read"])
    (row,) = json.loads((tmp_path / "deep" / "tokens.json").read_text())["tokens"]
    assert row.keys() == {"name", "sha256", "scopes", "made"}
    assert row["scopes"] == ["post", "read"]
