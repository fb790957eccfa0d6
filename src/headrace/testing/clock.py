"""A clock that moves only when told."""

from __future__ import annotations

from headrace.plan.time import parse_duration


class ManualClock:
    """Microseconds since 1970; call it to read it.

    >>> clock = ManualClock(5)
    >>> clock.advance("1 second"), clock()
    (1000005, 1000005)
    """

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, by: int | str) -> int:
        """Let time pass: microseconds, or a duration in words. Time does not go back."""
        step = parse_duration(by) if isinstance(by, str) else by
        if step < 0:
            raise ValueError(f"a clock does not go back, and was told to by {-step} microseconds")
        self.now += step
        return self.now
