"""The script of the demo. `examples/fraud.cql` holds the same text, and a test keeps it so."""

from __future__ import annotations

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
    """The script over the files of a pattern."""
    return FRAUD.replace(PAYMENTS, pattern.replace("'", "''"))
