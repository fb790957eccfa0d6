import signal

import pytest

from headrace.cli.failures import stopped_by
from headrace.cli.run.interrupts import Interrupts

EITHER = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@EITHER
def test_before_a_run_has_started_it_ends_at_once(number, code):
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt) as raised:
        signal.raise_signal(number)
    assert not interrupts.asked
    assert stopped_by(raised.value) == code


@EITHER
def test_while_a_run_goes_on_the_first_asks_and_the_second_ends(number, code):
    with Interrupts() as interrupts:
        interrupts.running = True
        signal.raise_signal(number)
        assert interrupts.asked
        assert stopped_by(interrupts.exception) == code
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


@EITHER
def test_afterwards_it_is_as_it_was(number, code):
    before = signal.getsignal(number)
    with Interrupts():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before
