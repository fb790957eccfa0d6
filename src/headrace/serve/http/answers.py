"""What was said of an event, as its sender gets it: by query, and apart what it changed of earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from headrace.changes.keys import SOURCE_BITS
from headrace.plan.joins import Join
from headrace.plan.nodes import Node, WindowReport, base_streams, children
from headrace.plan.patterns import Pattern
from headrace.runs.text import instant
from headrace.serve.deployment import Deployment
from headrace.serve.http.replies import as_json
from headrace.serve.http.texts import Write
from headrace.serve.records import Said

_FRONT = (1 << SOURCE_BITS) - 1
PLAIN = 3  # words of a key that say where a row stands; those behind them, of a row made of several, say of which others
SIGN = 1 << 63  # numbers have it added, as words


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, as replies show it: one row for the event, or a list of what it made with others."""

    name: bytes
    several: bool


class Answers:
    """Of one front end."""

    def __init__(self, deployment: Deployment, front: int, writes: Sequence[Write]) -> None:
        self._front, self._writes = front, writes
        queries = [f.query for f in deployment.finishes()]
        self.names = [q.name for q in queries]
        self._asked = [Asked(as_json(q.name), makes_several(q.node)) for q in queries]
        names = [s.name for s in deployment.streams]
        reads = [{s.name for s in base_streams(q.node)} for q in queries]
        self._of = [[n for n, streams in enumerate(reads) if name in streams] for name in names]

    def answered(self, stream: int, place: int, said: Sequence[Said]) -> bytes:
        """All of it. A query that says nothing of this event is there, with null."""
        mine, rest = self._apart(place, said)
        parts = (self._answer(n, mine.get(n, ())) for n in self._of[stream])
        earlier = b", ".join(map(self.change, rest))
        return b'{"place": %s, "answers": {%s}, "earlier": [%s]}' % (self.place(place), b", ".join(parts), earlier)

    def place(self, place: int) -> bytes:
        """An event as everybody calls it."""
        return b'"%d-%d"' % (self._front, place)

    def change(self, said: Said) -> bytes:
        """A row that came, or was taken back, and the event it stands at."""
        ts, source, place = said.key[:PLAIN]
        text = b'{"query": %s, "op": "%s", "place": "%d-%d", "time": "%s", "row": %s}'
        op = b"+" if said.sign > 0 else b"-"
        row = self._writes[said.query](said.row)
        return text % (self._asked[said.query].name, op, source & _FRONT, place, time_text(ts).encode(), row)

    def _apart(self, place: int, said: Sequence[Said]) -> tuple[dict[int, list[Said]], list[Said]]:
        """What is this event's own, by query, and the rest."""
        mine: dict[int, list[Said]] = {}
        rest, back = [], {(one.query, *one.key) for one in said if one.sign < 0}
        for one in said:
            if one.sign > 0 and self._is_own(one, place) and (one.query, *one.key) not in back:
                mine.setdefault(one.query, []).append(one)
            else:
                rest.append(one)
        return mine, rest

    def _is_own(self, one: Said, place: int) -> bool:
        """Whether it is made of this event: it stands there, or is made of it and of a later one."""
        numbers = [*one.key[1:PLAIN], *(word - SIGN for word in one.key[PLAIN:])]
        return any(at == place and source & _FRONT == self._front for source, at in pairwise(numbers))

    def _answer(self, query: int, own: Sequence[Said]) -> bytes:
        asked, write = self._asked[query], self._writes[query]
        if asked.several:
            return b"%s: [%s]" % (asked.name, b", ".join(write(one.row) for one in own))
        return b"%s: %s" % (asked.name, write(own[-1].row) if own else b"null")


def makes_several(node: Node) -> bool:
    """Whether an event may have any number of rows."""
    return isinstance(node, Join | Pattern | WindowReport) or any(map(makes_several, children(node)))


def time_text(micros: int) -> str:
    """An instant as results have it."""
    try:
        return instant(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
    except OverflowError:
        return str(micros)
