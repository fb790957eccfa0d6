"""Text into whole records, so that what is still being written is not read half."""

from __future__ import annotations

import numpy as np


def whole(text: bytes, delimiter: str | None) -> int:
    """How many bytes of a text that begins with a record are whole records.

    A record ends with its line; in CSV (which has a delimiter) not within quotes, in JSON not within brackets.
    """
    from headrace.kernels.text import records  # compiled code is loaded where files are followed

    if delimiter is None:
        return int(records.last_json_end(np.frombuffer(text, np.uint8)))
    return int(records.last_end(np.frombuffer(text, np.uint8), ord(delimiter))) if b'"' in text else text.rfind(b"\n") + 1
