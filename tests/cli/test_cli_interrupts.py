import signal

import pytest

from headrace.cli.interrupts import Interrupts


def test_before_a_run_has_started_ctrl_c_ends_at_once():
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert not interrupts.asked


def test_while_a_run_goes_on_the_first_asks_and_the_second_ends():
    with Interrupts() as interrupts:
        interrupts.running = True
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_it_is_as_it_was():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
