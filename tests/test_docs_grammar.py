"""docs/grammar.md against the parser: sentences are made up from its productions and read, and each keyword is known there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

import pytest

from headrace.errors import QueryError
from headrace.plan.schema import Schema
from headrace.sql import parse_script

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "grammar.md").read_text(encoding="utf-8")
BLOCKS = "\n\n".join(re.findall(r"^```ebnf\n(.*?)^```$", PAGE, re.M | re.S))
EXAMPLES = "\n".join(re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S))
COLUMNS = "(id BIGINT, card STRING, amount DOUBLE, x DOUBLE, at TIMESTAMP)"
PRELUDE = {  # what a sentence may speak of -> how it is made
    "sale": f"CREATE SCHEMA sale {COLUMNS};\n",
    "till": "CREATE SCHEMA till (till INT);\n",
    "payments": f"CREATE STREAM payments {COLUMNS} SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 10 SECONDS;\n",
    "refunds": f"CREATE STREAM refunds {COLUMNS} SOURCE FILE('r.csv') TIMESTAMP BY at DELAY 10 SECONDS;\n",
}
# Words of the productions that are no productions: what a sentence may have there.
TERMINALS = {
    "stream": ["payments", "refunds"],
    "schema": ["sale", "till"],
    "column": ["id", "amount", "y", "Z", "`a b`"],
    "type": ["BIGINT", "INT", "STRING", "DOUBLE", "TIMESTAMP", "DECIMAL(10, 2)", "ARRAY<STRING>"],
    "expression": ["id", "at", "amount", "amount + 1", "ABS(x - 1)", "UPPER(card)", "CASE WHEN id > 1 THEN x END", "id"],
    "condition": ["amount > 1", "card IS NOT NULL AND x BETWEEN 1 AND 2", "card LIKE 'a%'"],
    "number": ["1", "2", "10"],
    "0": ["0"],
    "string": ["'payments'", "'rfid'", "'ticks'"],
    "path": ["'dir/'", "'file.json'"],
    "format": ["'csv'", "'json'"],
    "delimiter": ["';'", "'|'"],
    "host": ["'localhost'"],
    "time": ["'2026-01-01 12:00:00'", "'2026-02-01'"],
    "length": ["'5 minutes'", "'90 s'"],
    "symbol": ["A", "B"],
    "event_time": ["at"],
    "option": ["rows", "rate", "seed"],
    "value": ["5", "100"],
}
NAMED = {"source": {"name": ["frame", "payments"]}}  # names that must exist: a DataFrame, a generator
SENTENCES = 800
TRIES = 2_000  # to make a sentence with a certain word that also means something
FRAME = Schema.of(id="BIGINT", card="STRING", amount="DOUBLE", x="DOUBLE", at="TIMESTAMP")
# Beside "expected ..", these are complaints about what is written and not about what it means.
GRAMMAR = re.compile(
    r"^expected|cannot stand here|is out of order|is not closed|closes nothing|is not there yet|is no place to write"
)


# Productions -> a tree. A keyword is an object of its own at each place where it is written.


@dataclass(frozen=True, eq=False)
class Word:
    """A keyword or a sign at its place; `rule` is the production."""

    text: str
    rule: str

    def __repr__(self) -> str:
        return f"{self.text} in {self.rule}"


@dataclass(frozen=True)
class Use:
    """Another production, or a terminal."""

    name: str
    rule: str


@dataclass(frozen=True)
class Sequence:
    parts: tuple


@dataclass(frozen=True)
class Choice:
    options: tuple


@dataclass(frozen=True)
class Repeat:
    part: object
    most: int  # 1: an option


@dataclass
class Reader:
    tokens: list[str]
    rule: str
    at: int = 0

    def choice(self):
        options = [self.sequence()]
        while self.here == "|":
            self.at += 1
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self):
        parts = []
        while self.here not in (None, "|", "]", "}", ")"):
            parts.append(self.part())
        assert parts, f"nothing stands in a part of {self.rule}"
        return Sequence(tuple(parts))

    def part(self):
        token = self.take()
        closing = {"[": "]", "{": "}", "(": ")"}.get(token)
        if closing:
            inside = self.choice()
            assert self.take() == closing, f"{closing} is missing in {self.rule}"
            return inside if token == "(" else Repeat(inside, 1 if token == "[" else 2)
        if token[0] == '"':
            return Word(token.strip('"'), self.rule)
        return Word(token, self.rule) if token.isupper() else Use(token, self.rule)

    @property
    def here(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]


@cache
def productions() -> dict:
    found = {}
    for rule in re.split(r"\n\s*\n", BLOCKS.strip()):
        name, written = rule.split(" = ", 1)
        tokens = re.findall(r'"[^"]*"|[\w]+|[\[\](){}|]', written)
        assert "".join(tokens) == re.sub(r'("[^"]*")|\s+', lambda m: m[1] or "", written), f"a sign without quotes in {name}"
        reader = Reader(tokens, name.strip())
        assert name.strip() not in found, f"{name} is there twice"
        found[name.strip()] = reader.choice()
        assert reader.here is None, f"{reader.here} closes nothing in {name}"
    return found


def walk(node):
    yield node
    match node:
        case Sequence(parts=inside) | Choice(options=inside):
            for part in inside:
                yield from walk(part)
        case Repeat(part=part):
            yield from walk(part)


def words() -> list[Word]:
    return [part for rule in productions().values() for part in walk(rule) if isinstance(part, Word)]


def uses() -> list[Use]:
    return [part for rule in productions().values() for part in walk(rule) if isinstance(part, Use)]


FAR = 1_000


@cache
def steps(rule: str, goal: Word) -> int:
    """How many productions there are between one and a word."""
    seen, near, far = {rule}, [rule], 0
    while near:
        parts = [part for name in near for part in walk(productions()[name])]
        if any(part is goal for part in parts):
            return far
        names = {part.name for part in parts if isinstance(part, Use) and part.name in productions()}
        near, far = sorted(names - seen), far + 1
        seen |= names
    return FAR


def away(node, goal: Word | None) -> int:
    """The same from a part of a production."""
    if goal is None:
        return FAR
    inside = list(walk(node))
    if any(part is goal for part in inside):
        return 0
    used = [part.name for part in inside if isinstance(part, Use) and part.name in productions()]
    return min((1 + steps(name, goal) for name in used), default=FAR)


def nearest(nodes, goal: Word | None) -> list:
    """Those that lead to the word by the shortest way; none if there is no way, or no word."""
    least = min(away(node, goal) for node in nodes)
    return [node for node in nodes if away(node, goal) == least] if least < FAR else []


# Sentences


@dataclass
class Writer:
    """Makes up a sentence, or one with a certain word in it. Deep down it takes the first option, and leaves out what it may."""

    random: Random
    often: float = 0.3  # how often what may be left out is there
    text: list[str] = field(default_factory=list)
    used: set[Word] = field(default_factory=set)
    fresh: count = field(default_factory=count)
    depth: int = 0

    def write(self, node, goal: Word | None = None) -> None:
        match node:
            case Word(text=text):
                self.text.append(text if self.random.random() < 0.8 else text.lower())
                self.used.add(node)
            case Sequence(parts=parts):
                there = next(iter(nearest(parts, goal)), None)
                for part in parts:
                    self.write(part, goal if part is there else None)
            case Choice(options=options):
                some = nearest(options, goal) or options
                self.write(some[0] if self.depth > 9 else self.random.choice(some), goal)
            case Repeat(part=part, most=most):
                wanted = away(part, goal) < FAR
                for turn in range(most):
                    if (wanted and turn == 0) or self.random.random() < (self.often if self.depth < 9 else 0):
                        self.write(part, goal if turn == 0 else None)
            case Use(name=name):
                self.use(name, node.rule, goal)

    def use(self, name: str, rule: str, goal: Word | None = None) -> None:
        if name in productions():
            self.depth += 1
            self.write(productions()[name], goal)
            self.depth -= 1
        elif name == "name":
            self.text.append(self.random.choice(NAMED[rule]["name"]) if rule in NAMED else f"n{next(self.fresh)}")
        else:
            self.text.append(self.random.choice(TERMINALS[name]))


def sentence(random: Random, rule: str = "statement") -> str:
    writer = Writer(random)
    writer.use(rule, rule)
    return " ".join(writer.text)


def refusal(text: str) -> str | None:
    """Why the parser does not take a statement; None if it does."""
    made = "".join(statement for name, statement in PRELUDE.items() if name in text)
    try:
        parse_script(made + text, frames={"frame": FRAME})
    except QueryError as error:
        return error.message
    return None


def is_grammar(reason: str | None) -> bool:
    return reason is not None and GRAMMAR.search(reason) is not None


def test_sentences_are_not_refused_for_their_grammar():
    made = [sentence(Random(seed)) for seed in range(SENTENCES)]
    refused = [(text, refusal(text)) for text in made]
    assert [(text, reason) for text, reason in refused if is_grammar(reason)][:5] == []
    assert sum(reason is None for _, reason in refused) > SENTENCES / 2


def test_every_word_stands_in_a_sentence_that_is_taken():
    """Also those behind which the parser would find something wrong, if it were taken for something else before."""
    # Two sides, a setting and a window, or two times, that fit together are not made up by chance; the examples have all these.
    shown = {"join": EXAMPLES, "select": EXAMPLES, "setting": EXAMPLES + EXAMPLES.upper(), "clause": "PUNCTUATED BY"}
    assert shown["clause"] in EXAMPLES
    # Which symbols go together is told by their conditions.
    left = {word: None for word in words() if word.rule != "rows_of" and word.text not in shown.get(word.rule, "")}
    for seed in range(TRIES):
        for word in list(left):
            if word not in left:
                continue
            writer = Writer(Random(f"{seed} {word}"), often=0.05)
            writer.use("script" if word.rule == "script" else "statement", "", word)
            assert word in writer.used
            left[word] = refusal(" ".join(writer.text))
            if left[word] is None:
                left = {w: reason for w, reason in left.items() if w not in writer.used}
    assert left == {}


def test_scripts_of_several_statements():
    for seed in range(50):
        text = sentence(Random(seed), "script")
        assert not is_grammar(refusal(text)), text


def test_every_name_is_a_production_or_explained():
    explained = set(re.findall(r"`(\w+)`", PAGE.split("| | |", 1)[1].split("\n\n", 1)[0])) | {"length", "0"}
    assert {use.name for use in uses()} - set(productions()) <= explained
    assert {use.name for use in uses()} | {"script"} >= set(productions())


def test_every_keyword_has_an_example():
    said = set(re.findall(r"\w+", EXAMPLES.upper()))
    plural = {word.text for word in words() if word.rule == "unit"}
    assert {w for word in words() if word.text[0].isalpha() for w in word.text.split()} - said - plural == {"DATAFRAME"}


def test_the_shell_completes_every_keyword():
    from headrace.cli.shell.prompt import KEYWORDS

    known = {word for phrase in KEYWORDS for word in phrase.split()} | {word.text for word in words() if word.rule == "unit"}
    assert {word.text for word in words() if word.text[0].isalpha()} - known == set()


def test_every_block_of_productions_has_examples():
    kinds = re.findall(r"^```(ebnf|sql)$", PAGE, re.M)
    assert kinds == ["ebnf", "sql"] * (len(kinds) // 2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM payments [RANGE 5 MINUTES LAGS 1 MINUTE]",
        "SELECT id FROM payments WHERE amount > 1 NONSENSE EMIT FINAL",
        "CREATE STREAM s SOURCE FILE()",
        "SHOW TABLES",
        "SELECT id FROM payments HAVING id > 1 WHERE id > 1",
    ],
)
def test_what_is_not_in_the_grammar_is_refused_for_it(text):
    assert is_grammar(refusal(text))
