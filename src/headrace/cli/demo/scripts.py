"""The scripts of the demos. `examples/fraud.cql` and `examples/thefts.cql` hold the same texts, and tests keep them so."""

from __future__ import annotations

from pathlib import Path

from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from headrace.cli.consoles import err

PAYMENTS = "out/demo/payments/*.csv"

FRAUD = f"""\
-- Block a card with more than 4 payments in 5 minutes. `headrace demo` writes the payments that this script reads.

CREATE STREAM payments (id BIGINT, card STRING, merchant STRING, amount DOUBLE, at TIMESTAMP)
  SOURCE FILE('{PAYMENTS}', ',')
  TIMESTAMP BY at
  DELAY 2 MINUTES;

-- For every payment: what its card did in the five minutes that end with this payment, to the microsecond.
-- Each alert leaves once, in order of time, when no payment within the DELAY can change it any more.
SELECT id, card, at, COUNT(*) AS n, SUM(amount) AS total
FROM payments [RANGE 5 MINUTES]
GROUP BY card
HAVING n > 4
EMIT FINAL IN ORDER
INTO alerts;

-- A payment that came more than two minutes late is in no window, but it is not lost either.
SELECT id, card, at FROM late(payments) INTO too_late;
"""


def fraud(pattern: str) -> str:
    return FRAUD.replace(PAYMENTS, pattern.replace("'", "''"))


READINGS = "out/demo/readings"
AT_ONCE, SURE, SORTED = "at_once", "sure", "sorted"

THEFT = """\
EVENT SEQ(shelf s, !(checkout c), exit e)
WHERE s.book = c.book AND c.book = e.book
WITHIN 5 HOURS
RETURN s.book AS book, s.at AS taken, e.at AS gone"""

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
{THEFT}
EMIT CHANGES
INTO {AT_ONCE};

-- Conservative: an alarm when no till can say any more that the book was paid for.
{THEFT}
EMIT FINAL
INTO {SURE};

-- K-slack: every reading waits six minutes, and then they are taken in order.
{THEFT}
EMIT FINAL IN ORDER USING KSLACK
INTO {SORTED};
"""


def thefts(folder: str) -> str:
    return THEFTS.replace(READINGS, folder.replace("'", "''"))


def titled(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", title_style="bold")


def show(path: Path, script: str, data: str) -> None:
    """Write a script, and show what it is about to read and what it says."""
    path.write_text(script, encoding="utf-8")
    console = err()
    console.print(Text(data))
    console.print(Text(f"\nThe script, {path}:\n"))
    console.print(Syntax(script.strip(), "sql", background_color="default", word_wrap=True))
    console.print()
