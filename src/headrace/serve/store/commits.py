"""The commits of a partition: files that nobody writes twice, of which the newest that is whole counts.

Newest is by epoch, then by number. Who opens a partition takes the newest commit and *claims* it: writes it again under his own
epoch, and looks once more. From then on nobody else removes anything:

    who owns it    writes commit m,   looks for a claim,    removes what m does not need
    who opens it   reads commit n,    writes his claim,     looks again: is there one newer than n?

If the claim was there when the owner looked, he removes nothing. If it was not, m was there before it, so who opens finds m when
he looks again, and takes that. What m does not need is needed by no later commit.
"""

from __future__ import annotations

from collections.abc import Collection

from headrace.errors import StaleError
from headrace.serve.store.manifest import Manifest
from headrace.serve.store.places import Place
from headrace.serve.store.sealed import Named, seal, unseal

Found = tuple[Named, bytes]  # a commit, and what it says


def listed(place: Place, kind: str = "commit") -> list[Named]:
    """The files of a kind, the newest first."""
    found = (Named.of(name) for name in place.names())
    return sorted((named for named in found if named is not None and named.kind == kind), reverse=True)


def newest(place: Place, besides: Collection[Named] = ()) -> Found | None:
    """The newest commit that is whole. One that is torn was never done; one that is damaged is an error."""
    while True:
        gone = False
        for named in listed(place):
            if named in besides:
                continue
            data = place.read(named.name)
            if data is None:  # a newer one is there by now
                gone = True
                break
            content = unseal(named, data, place.path)
            if content is not None:
                return named, bytes(content)
        if not gone:
            return None


def refuse_stale(place: Place, epoch: int) -> None:
    """Of the files there none may be of a later epoch."""
    later = max((named.epoch for named in listed(place)), default=epoch)
    if later > epoch:
        hint = "let go of the partition: the unit that has it now answers"
        raise StaleError(f"this unit has it in epoch {epoch}, and another in epoch {later}", where=place.path, hint=hint)


def claim(place: Place, epoch: int, number: int) -> tuple[Manifest, int]:
    """Take a partition over in an epoch. Gives its newest commit, and the number of the last one written."""
    refuse_stale(place, epoch)
    own: list[Named] = []
    found = newest(place)
    while True:
        own.append(Named(epoch, number + len(own), "commit"))
        content = Manifest().write() if found is None else found[1]
        place.put(own[-1].name, seal(own[-1], content))
        refuse_stale(place, epoch)
        again = newest(place, own)
        if again is None or (found is not None and again[0] <= found[0]):
            return Manifest.read(content, own[-1].name), own[-1].number
        found = again
