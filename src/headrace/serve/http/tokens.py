"""Who may do what: tokens with scopes. A file holds their hashes; the token itself is shown once, when it is made.

A token is 256 random bits, so one round of SHA-256 is all the hashing it needs: there is nothing to guess.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.errors import DataError, QueryError, unknown

READ, POST, ADMIN = "read", "post", "admin"
SCOPES = (READ, POST, ADMIN)
LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Token:
    """As the file has it."""

    name: str
    digest: bytes
    scopes: frozenset[str]
    made: str = ""

    def may(self, scope: str) -> bool:
        return scope in self.scopes or ADMIN in self.scopes


ANYBODY = Token("", b"", frozenset({ADMIN}))  # whoever is on this machine, where there are no tokens


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


# ---- the file ---------------------------------------------------------------------------------------------------------


def read_tokens(path: Path) -> tuple[Token, ...]:
    """All tokens of a file; none where it is not there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(map(_token, found["tokens"]))
    except FileNotFoundError:
        return ()
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is not a file of tokens"
        raise DataError(message, hint="remove it, and make the tokens anew with headrace token add") from error


def _token(found: dict[str, Any]) -> Token:
    scopes = frozenset(found["scopes"])
    if not scopes <= set(SCOPES):
        raise ValueError(f"scopes {sorted(scopes)}")
    return Token(str(found["name"]), bytes.fromhex(found["sha256"]), scopes, str(found["made"]))


def add_token(path: Path, name: str, scopes: Iterable[str]) -> str:
    """Make a token. Gives its text, which is nowhere else."""
    wanted = frozenset(scopes)
    for scope in sorted(wanted - set(SCOPES)):
        raise QueryError(unknown("scope", scope, SCOPES))
    if not wanted:
        raise QueryError("a token without a scope may do nothing", hint=f"--scope {' | '.join(SCOPES)}")
    text = f"hr_{secrets.token_urlsafe(32)}"
    with _changing(path) as tokens:
        if any(t.name == name for t in tokens):
            raise QueryError(f"there is a token {name!r} already", hint="remove it first, or choose another name")
        tokens.append(Token(name, digest_of(text), wanted, datetime.now(UTC).isoformat(timespec="seconds")))
    return text


def remove_token(path: Path, name: str) -> None:
    """From now on it opens nothing; servers see it within a second or two."""
    with _changing(path) as tokens:
        left = [t for t in tokens if t.name != name]
        if len(left) == len(tokens):
            raise QueryError(unknown("token", name, [t.name for t in tokens]))
        tokens[:] = left


@contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """One at a time reads the file, changes it and puts it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        tokens = list(read_tokens(path))
        yield tokens
        _write(path, tokens)
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, tokens: Iterable[Token]) -> None:
    rows = [{"name": t.name, "sha256": t.digest.hex(), "scopes": sorted(t.scopes), "made": t.made} for t in tokens]
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps({"tokens": rows}, indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


# ---- at the door ------------------------------------------------------------------------------------------------------


class Doorkeeper:
    """Knows the tokens of a file as it is now."""

    def __init__(self, path: Path | None, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._say, self._clock = path, say, clock
        self._tokens = read_tokens(path) if path else ()
        self._seen, self._looked = self._state(), clock()
        self.began_open = not self._tokens

    @property
    def open(self) -> bool:
        """Whether nobody needs a token. A server that began with tokens never opens."""
        return self.began_open and not self._tokens

    def who(self, authorization: str | None) -> Token | None:
        """Whose token this is. All are compared, and to the end, so that time tells nothing."""
        self._look()
        if self.open:
            return ANYBODY
        kind, _, text = (authorization or "").partition(" ")
        presented, found = digest_of(text.strip()), None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, presented):
                found = token
        return found if kind.lower() == "bearer" else None

    def knows(self, token: Token) -> bool:
        """Whether it still opens."""
        self._look()
        return self.open if token is ANYBODY else token in self._tokens

    def _look(self) -> None:
        if self.path is None or self._clock() - self._looked < LOOK_EVERY_S:
            return
        self._looked, state = self._clock(), self._state()
        if state != self._seen:
            self._seen = state
            self._read(self.path)

    def _read(self, path: Path) -> None:
        try:
            self._tokens = read_tokens(path)
        except (DataError, OSError) as error:
            self._tokens, self.began_open = (), False
            self._say(f"nobody is let in: {error}")
        self.began_open = self.began_open and not self._tokens

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self.path) if self.path else None
        except OSError:
            return None
        return found and (found.st_mtime_ns, found.st_ino, found.st_size)
