"""Units come, are told what they have, and are missed when their connection closes or their heartbeat stays out."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.log.log import At
from headrace.serve import coordinator as module
from headrace.serve.coordinator import Coordinator, Link
from headrace.serve.unit import Assign, Stop

PARTITIONS = [At("t", p) for p in range(4)]


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    made = Coordinator(PARTITIONS, {}, "secret")
    yield made
    made.stop()


def until(what: Callable[[], object], seconds: float = 5.0) -> object:
    """What it gives once it gives something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def has(link: Link, mine: dict[At, int]) -> dict[At, int]:
    """What a unit has been told last."""
    for order in link.orders():
        if isinstance(order, Assign):
            mine.clear()
            mine.update(order.epochs)
    return mine


def test_units_are_told_what_they_have(coordinator):
    one, two = (Link(coordinator.address, n, 1000 + n, "secret") for n in (1, 2))
    first, second = {}, {}
    until(lambda: (has(one, first), has(two, second)) and len(first) == len(second) == 2)
    assert {*first, *second} == set(PARTITIONS)
    assert coordinator.members() == {1: 1001, 2: 1002}
    two.close()
    until(lambda: has(one, first) and len(first) == 4)
    assert sorted(first.values()) == [1, 1, 3, 3]  # its own, and those that went to the other and came back


def test_who_does_not_know_the_secret_is_nobody(coordinator):
    stranger = Link(coordinator.address, 1, 1, "guess")
    orders = []
    until(lambda: orders.extend(stranger.orders()) or any(isinstance(o, Stop) for o in orders))
    assert coordinator.members() == {}


def test_what_is_no_message_ends_the_connection(coordinator):
    with socket.create_connection(coordinator.address) as connection:
        connection.sendall(b"what?\n")
        assert connection.recv(10) == b""


def test_a_unit_that_hangs_is_taken_for_dead(coordinator, monkeypatch):
    monkeypatch.setattr(module, "SILENT_S", 0.3)
    monkeypatch.setattr(module, "BEAT_S", 0.05)
    hangs, well, mine = Link(coordinator.address, 1, 1, "secret"), Link(coordinator.address, 2, 2, "secret"), {}
    coordinator.wait_for(2, 5)
    until(lambda: has(well, mine) and len(mine) == 4)  # the other never asks for its orders
    assert coordinator.members().keys() == {2}
    hangs.close()


def test_who_comes_again_takes_its_own_place(coordinator):
    first, again, mine = Link(coordinator.address, 1, 10, "secret"), None, {}
    until(lambda: has(first, mine))
    again = Link(coordinator.address, 1, 11, "secret")
    until(lambda: has(again, mine))
    until(lambda: coordinator.members() == {1: 11})
    assert len(mine) == 4


def test_all_are_told_to_end():
    made = Coordinator(PARTITIONS, {}, "secret")
    link, orders = Link(made.address, 1, 1, "secret"), []
    made.wait_for(1, 5)
    made.stop()
    until(lambda: orders.extend(link.orders()) or any(isinstance(o, Stop) for o in orders))
