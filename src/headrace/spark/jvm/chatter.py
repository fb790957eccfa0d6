"""What the JVM and the Python workers say, kept off the terminal. The last of it is there when Spark does not start."""

from __future__ import annotations

import os
import threading
from collections import deque

from headrace.errors import HeadraceError, SetupError, SystemFailure

KEPT_LINES = 50


class Chatter:
    """The far end of a pipe: takes whatever is said, remembers the last lines. A file would grow as long as a stream runs."""

    def __init__(self) -> None:
        """Listen from now on, in a thread of its own."""
        read, self.write = os.pipe()
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._thread = threading.Thread(target=self._listen, args=(read,), name="headrace-chatter", daemon=True)
        self._thread.start()

    def _listen(self, read: int) -> None:
        with os.fdopen(read, encoding="utf-8", errors="replace") as said:
            for line in said:
                if line.strip():
                    self.lines.append(line.rstrip())

    def close(self) -> None:
        """Only the JVM holds the pipe from now on."""
        os.close(self.write)

    def last_words(self) -> str:
        self._thread.join(1)
        return "\n".join(self.lines)


def why_no_java(said: str) -> HeadraceError:
    hint = "Spark needs Java 17 or newer: `make setup` finds or installs one, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    java = f"the Java in JAVA_HOME, {home}," if home else "the Java on your PATH"

    def says(*words: str) -> bool:
        return any(word in said for word in words)

    if says("JAVA_HOME is not set", "java: command not found", "java: not found"):
        return SetupError("there is no Java", hint=hint)
    if home and says("No such file or directory", "not found") and not os.path.exists(os.path.join(home, "bin/java")):
        return SetupError(f"there is no Java in JAVA_HOME, {home}", hint=hint)
    if says("UnsupportedClassVersionError", "Unrecognized option: --add", "class file version"):
        return SetupError(f"{java} is too old", hint=hint)
    if says("jdk.incubator.vector"):
        return SetupError(f"{java} lacks the module jdk.incubator.vector, as cut-down runtimes do", hint=hint)
    if says("Could not reserve enough space", "insufficient memory", "Cannot allocate memory"):
        less = "free some, or give it less: HEADRACE_DRIVER_MEMORY=2g"
        return SystemFailure("there is too little memory to start the JVM", hint=less)
    return SetupError(f"Spark did not start: {said}", hint=hint)
