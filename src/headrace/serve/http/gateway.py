"""What becomes of posted events, whichever way they came: read, judged by the front, answered in one piece."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.errors import DataError, unknown
from headrace.plan.time import format_duration
from headrace.serve.events import Event, Punctuation, Rejected
from headrace.serve.front import Answer, Front, Taken
from headrace.serve.http.answers import Answers, time_text
from headrace.serve.http.collecting import Collecting
from headrace.serve.http.limits import Limiter
from headrace.serve.http.metrics import Metrics
from headrace.serve.http.posting import Post, Posting
from headrace.serve.http.replies import Refused, Reply, as_json
from headrace.serve.http.texts import Texts
from headrace.serve.http.tokens import Token

BREATH = 16  # events of a batch, after which others may come in between
LONGEST_ID = 200


@dataclass(frozen=True, slots=True)
class Pending:
    """An event whose answer is on its way."""

    stream: int
    place: int
    answer: asyncio.Future[Answer | None]
    until: float


class Gateway:
    """One for a front end; lives on the loop."""

    def __init__(
        self, front: Front, texts: Texts, posting: Posting, collecting: Collecting, limiter: Limiter, metrics: Metrics,
        answer_s: float, failed: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        """`failed`: is told of what this front cannot go on after."""
        self.front, self.limiter, self.metrics = front, limiter, metrics
        self.answers = Answers(front.deployment, front.number, texts.writes)
        self._texts, self._posting, self._collecting = texts, posting, collecting
        self._answer_s, self._failed, self.broken = answer_s, failed, False
        self._highest, self._waiting = -1, set[asyncio.Future[Answer | None]]()
        self._nothing = [[None] * len(s.schema.fields) for s in front.deployment.streams]
        self._streams = {s.name: i for i, s in enumerate(front.deployment.streams)}

    def stream(self, name: str) -> int:
        number = self._streams.get(name)
        if number is None:
            raise Refused(404, unknown("stream", name, self._streams))
        return number

    async def one(self, token: Token, stream: int, event: bytes, id: str | None) -> Reply:
        """The reply to an event."""
        with self.limiter.events(token, 1):
            came = await self._post(stream, event, checked_id(id))
            return came if isinstance(came, Reply) else await self._whole(came)

    async def several(self, token: Token, stream: int, events: Sequence[bytes], id: str | None) -> list[Reply]:
        """A reply for each event, in order. Its own id is that of all, with its number: one that nobody can give himself."""
        whole = checked_id(id)
        ids = [None if whole is None else f"{whole}\n{n}" for n in range(len(events))]
        with self.limiter.events(token, len(events)):
            came = []
            for number, (one, own) in enumerate(zip(events, ids, strict=True), start=1):
                came.append(await self._post(stream, one, own))
                if number % BREATH == 0:
                    await asyncio.sleep(0)
            return [one if isinstance(one, Reply) else await self._whole(one) for one in came]

    # ---- posting --------------------------------------------------------------------------------------------------

    async def _post(self, stream: int, event: bytes, id: str | None) -> Reply | Pending:
        if self.broken:
            raise _broken()
        began = time.monotonic()
        read = self._texts.reads[stream](event, self.front.now())
        if isinstance(read, Rejected):
            return self._rejected(stream, read)
        try:
            taken = await self._posting.post(self._row(stream, read, id))
        except DataError as error:
            return self._rejected(stream, Rejected(error.message))
        except Exception as error:
            self._break(error)
            raise _broken() from error
        return self._taken(stream, read, taken, began)

    def _row(self, stream: int, read: Event | Punctuation, id: str | None) -> Post:
        if isinstance(read, Event):
            return Post(stream, read.time, read.values, id)
        return Post(stream, None, self._nothing[stream], id, read.promise)

    def _taken(self, stream: int, read: Event | Punctuation, taken: Taken, began: float) -> Reply | Pending:
        new, self._highest = taken.place > self._highest, max(self._highest, taken.place)
        if new:
            self._count(stream, read, taken, began)
        if taken.answer is not None:
            answer = self._collecting.wait(taken.answer)
            self._waiting.add(answer)
            return Pending(stream, taken.place, answer, began + self._answer_s)
        place = self.answers.place(taken.place)
        if isinstance(read, Punctuation):
            return Reply(200, b'{"place": %s, "promised": "%s"}' % (place, time_text(read.promise).encode()))
        return Reply(200, b'{"place": %s, "late": %s}' % (place, as_json(lateness(read.time, taken.complete_before))))

    def _count(self, stream: int, read: Event | Punctuation, taken: Taken, began: float) -> None:
        """What is posted again is not counted again."""
        self.metrics.count("punctuation" if isinstance(read, Punctuation) else "events", stream)
        if taken.answer is not None:
            self.metrics.posted(taken.place, began)
        elif isinstance(read, Event):
            self.metrics.count("late", stream)

    def _rejected(self, stream: int, why: Rejected) -> Reply:
        self.metrics.count("rejected", stream)
        return Reply(422, as_json({"rejected": {"reason": why.reason}}))

    def _break(self, error: Exception) -> None:
        """It is not known how far the event came: only whoever takes the name anew, and reads the journal, can tell."""
        if not self.broken:
            self.broken = True
            self._failed(error)

    # ---- answers --------------------------------------------------------------------------------------------------

    async def _whole(self, pending: Pending) -> Reply:
        """Once the answers of all topics are there, or it takes too long."""
        left = max(0.0, pending.until - time.monotonic())
        timer = asyncio.get_running_loop().call_later(left, _give_up, pending.answer)
        answer = None
        try:
            answer = await pending.answer
        finally:
            timer.cancel()
            self._waiting.discard(pending.answer)
            self.metrics.replied(pending.stream, pending.place, whole=answer is not None)
        if answer is not None:
            return Reply(200, self.answers.answered(pending.stream, pending.place, answer.said))
        self.metrics.count("unanswered", pending.stream)
        return self._unanswered(pending.place)

    def give_up(self) -> None:
        """All who wait are told that they wait in vain."""
        for answer in tuple(self._waiting):
            _give_up(answer)

    def _unanswered(self, place: int) -> Reply:
        message = "the event was accepted, and has not been answered yet"
        hint = "it counts; post it again with the same id to ask for its answer"
        body = b'{"place": %s, "accepted": true, "error": %s, "hint": %s}'
        return Reply(504, body % (self.answers.place(place), as_json(message), as_json(hint)))


def _give_up(answer: asyncio.Future[Answer | None]) -> None:
    if not answer.done():
        answer.set_result(None)


def lateness(ts: int, complete_before: int) -> dict[str, object]:
    """How late an event is, and what its stream was complete up to."""
    by = complete_before - ts
    return {
        "time": time_text(ts), "complete_before": time_text(complete_before), "by_seconds": by / 1_000_000,
        "message": f"the stream was complete before {time_text(complete_before)}, and this is {format_duration(by)} behind",
    }  # fmt: skip


def checked_id(id: str | None) -> str | None:
    """An id that a client gives."""
    if id is not None and (not 0 < len(id) <= LONGEST_ID or not id.isprintable()):
        raise Refused(400, f"an id of an event has 1 to {LONGEST_ID} printable characters")
    return id


def _broken() -> Refused:
    message = "this front end cannot go on; it is not known whether the event was accepted"
    return Refused(503, message, hint="post it again, with the same id", retry_after=1)
