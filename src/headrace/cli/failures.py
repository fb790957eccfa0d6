"""How a command fails: a message a person can act on, and an exit code a script can."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from headrace.cli.consoles import complain, err
from headrace.cli.main import Terminated
from headrace.errors import HeadraceError, QueryError

FAILED = 1  # the data, a source, a sink, a checkpoint, or Headrace itself
MISUSED = 2  # the script or the command is wrong
INTERRUPTED = 130
TERMINATED = 143
PIPE_CLOSED = 141


@contextmanager
def reported(verbose: bool = False) -> Iterator[None]:
    """Turn whatever goes wrong inside into a message and an exit code; a traceback only if `verbose`."""
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt as signal:
        raise typer.Exit(stopped_by(signal)) from None
    except BrokenPipeError:
        # Whoever read our output has seen enough (`headrace run .. | head`). Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None
    except Exception as error:
        _show(error, verbose)
        raise typer.Exit(exit_code(error)) from None


def stopped_by(signal: KeyboardInterrupt) -> int:
    """What a shell would say of a process that this signal had ended."""
    return TERMINATED if isinstance(signal, Terminated) else INTERRUPTED


def exit_code(error: Exception) -> int:
    return MISUSED if isinstance(error, QueryError) else FAILED


def _show(error: Exception, verbose: bool) -> None:
    if verbose:
        err().print_exception(suppress=[typer])
    if isinstance(error, HeadraceError):
        message = f"{error.where}: {error.message}" if error.where else error.message
        # Errors in SQL have the line that is meant, underlined.
        complain(error.title, message, error.hint, getattr(error, "underlined", None))
        return
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        complain("the system refused", f"{name}{error.strerror}")
        return
    hint = None if verbose else "run it again with --verbose for the whole story"
    complain("unexpected error", f"{type(error).__name__}: {error}", hint)
