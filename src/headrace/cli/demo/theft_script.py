"""The script of the theft demo. `examples/thefts.cql` holds the same text, and a test keeps it so."""

from __future__ import annotations

READINGS = "out/demo/readings"
AT_ONCE, SURE, SORTED = "at_once", "sure", "sorted"

THEFTS = f"""\
-- A book that leaves without passing a till. `headrace demo patterns` writes the readings that this script reads.

CREATE SCHEMA reading (book STRING, reader INT, at TIMESTAMP, pog TIMESTAMP);

-- The antennas send what they read within six minutes. Those of the tills also say up to when they have sent everything.
CREATE STREAM shelf reading SOURCE FILE('{READINGS}/shelf') TIMESTAMP BY at DELAY 6 MINUTES;

CREATE STREAM exit reading SOURCE FILE('{READINGS}/exit') TIMESTAMP BY at DELAY 6 MINUTES;

CREATE STREAM checkout reading
  SOURCE FILE('{READINGS}/checkout')
  TIMESTAMP BY at
  DELAY 6 MINUTES
  PUNCTUATED BY pog;

-- Aggressive: an alarm at once, and an apology if the book was paid for after all.
EVENT SEQ(shelf s, !(checkout c), exit e)
WHERE s.book = c.book AND c.book = e.book
WITHIN 5 HOURS
RETURN s.book AS book, s.at AS taken, e.at AS gone
EMIT CHANGES
INTO {AT_ONCE};

-- Conservative: an alarm when no till can say any more that the book was paid for.
EVENT SEQ(shelf s, !(checkout c), exit e)
WHERE s.book = c.book AND c.book = e.book
WITHIN 5 HOURS
RETURN s.book AS book, s.at AS taken, e.at AS gone
EMIT FINAL
INTO {SURE};

-- K-slack: every reading waits six minutes, and then they are taken in order.
EVENT SEQ(shelf s, !(checkout c), exit e)
WHERE s.book = c.book AND c.book = e.book
WITHIN 5 HOURS
RETURN s.book AS book, s.at AS taken, e.at AS gone
EMIT FINAL IN ORDER USING KSLACK
INTO {SORTED};
"""


def script(folder: str) -> str:
    """The script over the readings in a folder."""
    return THEFTS.replace(READINGS, folder.replace("'", "''"))
