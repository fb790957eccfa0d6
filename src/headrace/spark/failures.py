"""What went wrong, in one clear error, out of Spark's many lines: whose fault it is, where, and what to do."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace import errors
from headrace.errors import DataError, HeadraceError, QueryError, SetupError, SourceError, SparkFailure, StateError, SystemFailure

READING = "Encountered error while reading file"
OURS = re.compile(r"headrace\.errors\.(\w+): (.*)")
CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE)
FULL = 1 << 20  # a disk with less room than this is full
RESUME = "start again with the same --checkpoint: nothing that was taken in is lost"
SHIP = "ship it with the job (docs/cluster.md), or name a Python that has it with PYSPARK_PYTHON"
NEEDED = "headrace|pyspark|py4j|pyarrow|pandas|numpy|numba|sqlglot|google|protobuf"


@dataclass(frozen=True, slots=True)
class Places:
    """What a run reads and writes, so that a path in a failure can be called by what it is."""

    checkpoint: str | None = None
    sinks: tuple[str, ...] = ()

    def name(self, path: str) -> str:
        """What a path is to the run: `the checkpoint`, `a result`, or a file as any other."""
        if self.checkpoint is not None and _within(path, self.checkpoint):
            return "the checkpoint"
        if any(_within(path, sink) for sink in self.sinks):
            return "a result"
        return "the file"

    def full(self) -> str | None:
        """Where there is no room now, if that can be told."""
        for place in (self.checkpoint, *self.sinks, tempfile.gettempdir()):
            folder = _existing_part(place) if place is not None and "://" not in place else None
            if folder is not None and shutil.disk_usage(folder).free < FULL:
                return folder
        return None


NOWHERE = Places()


def refused(error: Exception) -> QueryError:
    return QueryError(f"Spark does not accept the query: {str(error).split(chr(10))[0]}")


@contextmanager
def explained(places: Places = NOWHERE) -> Iterator[None]:
    """Whatever Spark or the system raises inside, told as an error of Headrace."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except AnalysisException as error:
        found = explain_failure(error, places)
        raise (refused(error) if isinstance(found, SparkFailure) else found) from None
    except (PySparkException, Py4JError, OSError) as error:
        raise explain_failure(error, places) from None


def explain_failure(error: BaseException, places: Places = NOWHERE) -> HeadraceError:
    """An error of Headrace that says what Spark's error means."""
    if isinstance(error, HeadraceError):
        return error
    text = whole_text(error)
    ours = OURS.findall(text)
    if ours:
        kind, message = ours[-1]
        hint = re.search(re.escape(message) + r"\n\s+hint: (.*)", text)
        known = getattr(errors, kind, DataError)
        return known(message, hint=hint[1] if hint else None)
    for pattern, explain in RULES:
        if found := re.search(pattern, text):
            return explain(found, text, places)
    return SparkFailure(_last_cause(text), hint="run with --verbose for Spark's own log")


def whole_text(error: BaseException) -> str:
    """All that an error and its causes say, outermost first. What Spark calls a message may be in the stack only."""
    parts: list[str] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        parts += [str(cause), getattr(cause, "_stackTrace", None) or ""]
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(dict.fromkeys(parts))


def _last_cause(text: str) -> str:
    causes = CAUSE.findall(text)
    return (causes[-1] if causes else text.strip().split("\n")[0])[:500]


Explain = Callable[[re.Match[str], str, Places], HeadraceError]


def _says(kind: type[HeadraceError], message: str, hint: str) -> Explain:
    """An error in these words; in braces the names of what was found, or `cause`, what Spark says last."""

    def explain(found: re.Match[str], text: str, places: Places) -> HeadraceError:
        return kind(message.format(found[0], cause=_last_cause(text), **found.groupdict()), hint=hint)

    return explain


_port = _says(
    SystemFailure,
    "Spark cannot open a port of its own: {cause}",
    "Spark listens on 127.0.0.1 on any free port: look whether the loopback interface is up and sockets are allowed; "
    "in a session of your own, spark.driver.bindAddress and spark.port.maxRetries say where",
)
_no_module = _says(SetupError, "Spark's Python workers cannot import {module}", SHIP)
_other_version = _says(SetupError, "Spark's Python workers have another version of Headrace than this program: {cause}", SHIP)
_other_python = _says(
    SetupError,
    "Spark's Python workers run Python {worker}, and this program {driver}",
    "set PYSPARK_PYTHON to the same Python on all machines (docs/cluster.md)",
)
_no_python = _says(SetupError, "Spark cannot start {program!r} for its Python workers", "set PYSPARK_PYTHON to a Python")
_killed = _says(
    SystemFailure,
    "a Python worker of Spark died in the midst of its work; where memory is short, the system kills the largest process",
    f"look for 'Killed process' in dmesg; give it more memory or less to do at a time, and {RESUME}",
)
_gone = _says(
    SystemFailure,
    "Spark's JVM is gone: it was killed, or has crashed; where memory is short, the system kills the largest process",
    f"look for 'Killed process' in dmesg and for hs_err files; {RESUME}",
)
_memory = _says(
    SystemFailure,
    "out of memory: {}",
    "give the JVM more (HEADRACE_DRIVER_MEMORY=8g; in a session of your own spark.driver.memory or "
    f"spark.executor.memory), or declare shorter windows or delays, and {RESUME}",
)
_data = _says(DataError, "{cause}", "correct the columns of CREATE STREAM, or the data")


def _disk(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    where = _path_near(found, text) or places.full()
    return SystemFailure(f"the disk is full{f': {where}' if where else ''}", hint=f"make room there and {RESUME}")


def _denied(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    path = _path_near(found, text)
    if path is None:
        return SystemFailure("permission denied", hint="run with --verbose to see by what")
    what = places.name(path)
    hint = f"let user {getpass.getuser()} {'read' if what == 'the file' else 'write'} it, or name another place"
    kind = SourceError if what == "the file" and not os.access(_existing_part(path) or "/", os.R_OK) else SystemFailure
    return kind(f"permission denied for {what} {path}", hint=hint)


def _read_only(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    path = _path_near(found, text)
    what = f"{places.name(path)} {path} is on a file system that" if path else "a file system"
    hint = "name another place for results (INTO FILE) or state (--checkpoint)"
    return SystemFailure(f"{what} cannot be written to", hint=hint)


def _not_a_folder(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    path = _path_near(found, text)
    place = f"{places.name(path)} {path}" if path else "a place"
    return SystemFailure(f"{place} needs a directory where there is a file", hint="remove that file, or name another place")


def _vanished(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    path = _plain(found["path"])
    if places.name(path) == "the checkpoint":
        return _damaged(found, text, places)
    hint = f"leave files where they are until they are read; put it back and {RESUME}"
    return SourceError(f"the file {path} is gone: it was there when the run looked, and not when it was read", hint=hint)


def _unreadable(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    path = _path_near(found, text) or _path_near(re.search(READING, text) or found, text)
    what = "compressed" if "GZIP" in found[0] or "ZLIB" in found[0] else "parquet"
    hint = "write files elsewhere and move them into place when they are whole; mend or remove this one, and start again"
    return SourceError(f"{path or 'a file'} is no {what} file that can be read: it is damaged, or was not whole yet", hint=hint)


def _in_use(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    hint = "stop that run, or name another directory with --checkpoint"
    return StateError(f"another run uses the checkpoint {places.checkpoint or ''}".rstrip(), hint=hint)


def _damaged(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    hint = "bring back a copy of the whole directory, or name a new one with --checkpoint and read the input from its start"
    return StateError(f"the checkpoint {places.checkpoint or ''} is damaged: {_last_cause(text)}".replace("  ", " "), hint=hint)


def _checksum(found: re.Match[str], text: str, places: Places) -> HeadraceError:
    kept = places.name(_plain(found["path"])) == "the checkpoint"
    return _damaged(found, text, places) if kept else _unreadable(found, text, places)


# The first that matches; what is sure and particular comes before what may be a consequence of something else.
RULES: tuple[tuple[str, Explain], ...] = (
    (r"No space left on device|Disk quota exceeded|There is not enough space on the disk", _disk),
    (r"Permission denied|AccessControlException|Operation not permitted", _denied),
    (r"Read-only file system", _read_only),
    (r"ModuleNotFoundError: No module named '(?P<module>NEEDED)\b", _no_module),
    (r"Error while finding module specification for '(?P<module>NEEDED)\b", _no_module),
    (r"(?:AttributeError: Can't get attribute|ImportError: cannot import name).*headrace", _other_version),
    (r"PYTHON_VERSION_MISMATCH\D*?(?P<worker>\d+\.\d+)\D+?(?P<driver>\d+\.\d+)", _other_python),
    (r'Cannot run program "(?P<program>[^"]*)"', _no_python),
    (r"OutOfMemoryError: [^\n]*|GC overhead limit exceeded|\bMemoryError\b|ArrowMemoryError: [^\n]*", _memory),
    (r"Python worker exited unexpectedly|PYTHON_WORKER_EXITED|Python worker process terminated", _killed),
    (r"(?:Stream closed|EOFException)[^\0]{0,3000}?PythonWorker(?:Factory|s?\b)", _killed),  # the process that makes workers
    (r"^\[Errno 111\] Connection refused|Answer from Java side is empty", _gone),
    (r"^Error while (?:sending|receiving)|while trying to connect to the Java", _gone),
    (r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming jobs detected|CONCURRENT_QUERY|already an active query", _in_use),
    (r"java\.net\.BindException|Address already in use|Cannot assign requested address", _port),
    (r"(?:File |FILE_NOT_EXIST\] [^\n]*?)(?P<path>(?:file:)?/\S+?) does not exist", _vanished),
    (r"is not a Parquet file|CANNOT_READ_FILE_FOOTER|Could not read footer|Not in GZIP format|end of ZLIB input", _unreadable),
    (r"FAILED_READ_FILE\.NO_HINT\] Encountered error while reading file", _unreadable),
    (r"CANNOT_LOAD_STATE_STORE|STATE_STORE_\w+|STDS_\w+|Malformed log|log file was malformed|Corruption: ", _damaged),
    (r"Checksum error: (?P<path>\S+)", _checksum),
    (
        r"Incomplete log file|failed to read log file|UnrecognizedPropertyException|JsonParseException|MALFORMED_CHECKPOINT",
        _damaged,
    ),
    (r"Not a directory|ParentNotDirectoryException|File exists|Mkdirs failed to create", _not_a_folder),
    (r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported|CANNOT_CONVERT|CANNOT_MERGE_SCHEMAS", _data),
    (r"CAST_INVALID_INPUT|CAST_OVERFLOW|ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|NUMERIC_VALUE_OUT_OF_RANGE|CANNOT_PARSE", _data),
)
RULES = tuple((pattern.replace("NEEDED", NEEDED), explain) for pattern, explain in RULES)

# How the path stands beside what is wrong with it: Python's errors, Arrow's, Java's, Hadoop's, RocksDB's.
PATHS = (
    r"{what} (?P<path>(?:file:)?/[^\s:,\"']+)",
    r"{what}:? ?'(?P<path>[^'\n]+)'",
    r"(?P<path>/[^\n():]+?) \({what}\)",
    r"(?:file|directory|path) '(?P<path>[^'\n]+)'[^\n]*{what}",
    r"(?P<path>(?:file:)?/[^\s:,\"']+): {what}",
    r"(?P<path>(?:file:)?/[^\s:,\"']+) {what}",
    r"{what}[^\n/]*?(?P<path>(?:file:)?/[^\s:,\"'()]+)",
    r"(?:file|path|directory)[ =:]+'?(?P<path>(?:file:)?/[^\s,\"'()]+)",
)


def _path_near(found: re.Match[str], text: str) -> str | None:
    """The path that goes with what was found, if one is there."""
    for shape in PATHS:
        if near := re.search(shape.replace("{what}", re.escape(found[0])), text):
            return _plain(near["path"])
    return None


def _plain(path: str) -> str:
    """A path as the user would write it."""
    return re.sub(r"^file:/+", "/", path).rstrip(".,;")


def _within(path: str, folder: str) -> bool:
    return os.path.abspath(path).startswith(os.path.abspath(folder))


def _existing_part(path: str) -> str | None:
    path = os.path.abspath(path)
    while path != "/" and not os.path.exists(path):
        path = os.path.dirname(path)
    return path
