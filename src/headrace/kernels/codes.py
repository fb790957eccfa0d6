"""What a value is, beside the value itself: one small integer per row, so that the hot loops never meet NULL or NaN.

The order counts: below NULL there is a value of some sort; ABSENT rows are in the window, but a WHERE or FILTER keeps them out
of this aggregate.
"""

from __future__ import annotations

VALUE = 0
NAN = 1
PLUS_INFINITY = 2
MINUS_INFINITY = 3
NULL = 4
ABSENT = 5
