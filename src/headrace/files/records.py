"""Text into whole records, so that what is still being written is not read half."""

from __future__ import annotations

import numpy as np


def whole(text: bytes, delimiter: str | None) -> int:
    """How many bytes of a text that begins with a record are whole records.

    A record ends with its line; in CSV (which has a delimiter) not within quotes.
    """
    if delimiter is None or b'"' not in text:
        return text.rfind(b"\n") + 1
    from headrace.kernels.records import last_end  # compiled code is loaded where there are quotes

    return int(last_end(np.frombuffer(text, np.uint8), ord(delimiter)))


def first_record(text: bytes, delimiter: str | None) -> bytes | None:
    """The first record with its line end, if all of it is there."""
    end = text.find(b"\n") + 1
    while end:
        if whole(text[:end], delimiter) == end:
            return text[:end]
        end = text.find(b"\n", end) + 1
    return None
