"""Sequence patterns once more, as sets over all combinations of events, with a key as separate streams: to judge the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise, product


@dataclass(frozen=True)
class Ev:
    stream: str
    ts: int
    pos: int
    n: int
    id: str | None
    zone: int | None


@dataclass
class Spec:
    """`places`: (name, stream, kind); `conditions`: (names, function of their events), true or not."""

    places: list[tuple[str, str, str]]
    conditions: list[tuple[tuple[str, ...], Callable[..., bool]]] = field(default_factory=list)
    within: int = 10
    selection: str = "ANY"
    keyed: bool = False

    def of_kind(self, kind):
        return [name for name, _, k in self.places if k == kind]

    @property
    def positive(self):
        return [name for name, _, kind in self.places if kind != "negated"]

    @property
    def ranks(self):
        return list(dict.fromkeys(stream for _, stream, _ in self.places))


def matches(spec, events):
    """Counted: for each result the numbers of its events, a tuple of them for a repeated place."""
    if spec.keyed:
        # NULL equals nothing: such an event follows nothing, and nothing forbids it.
        alone = len(spec.positive) == 1
        streams = [stream for name, stream, _ in spec.places if name in spec.positive]
        out = Counter((e.n,) for e in events if alone and e.id is None and e.stream in streams)
        for key in {e.id for e in events if e.id is not None}:
            out += _matches(spec, [e for e in events if e.id == key])
        return out
    return _matches(spec, events)


def _matches(spec, events):
    streams = {name: stream for name, stream, _ in spec.places}
    events = [e for e in events if e.stream in spec.ranks]

    def order(e):
        return (e.ts, spec.ranks.index(e.stream), e.pos)

    def at(name):
        return [e for e in events if e.stream == streams[name]]

    def true(names, chosen):
        """All conditions that only need these names, one of which is the last."""
        return all(f(*(chosen[m] for m in own)) for own, f in spec.conditions if names[-1] in own and set(own) <= set(names))

    singles = spec.of_kind("single")
    out = Counter()
    for combo in product(*map(at, singles)):
        chosen = dict(zip(singles, combo, strict=True))
        if not all(order(x) < order(y) for x, y in pairwise(combo)):
            continue
        if not all(f(*(chosen[m] for m in own)) for own, f in spec.conditions if set(own) <= set(singles)):
            continue
        options = [[{}]]
        for name in spec.of_kind("repeated"):
            options.append(list(_groups(spec, name, chosen, at, order)))
        for parts in product(*options):
            groups = {k: v for part in parts for k, v in part.items()}
            if _stands(spec, chosen, groups, events, at, order, true):
                shown = [tuple(e.n for e in groups[p]) if p in groups else chosen[p].n for p in spec.positive]
                out[tuple(shown)] += 1
    return out


def _groups(spec, name, chosen, at, order):
    names = [p for p, _, _ in spec.places]
    i = names.index(name)
    low = order(chosen[names[i - 1]]) if i else None
    high = order(chosen[names[i + 1]]) if i + 1 < len(names) else None
    own = [(who, f) for who, f in spec.conditions if name in who]
    fits = sorted(
        (
            e
            for e in at(name)
            if (low is None or low < order(e))
            and (high is None or order(e) < high)
            and all(f(*({**chosen, name: e}[m] for m in who)) for who, f in own)
        ),
        key=order,
    )
    if low is None:
        yield from ({name: fits[k:]} for k in range(len(fits)))
    elif high is None:
        yield from ({name: fits[: k + 1]} for k in range(len(fits)))
    elif fits:
        yield {name: fits}


def _stands(spec, chosen, groups, events, at, order, true):
    last_place = spec.positive[-1]
    full = {**chosen, **{p: g[-1] if p == last_place else g[0] for p, g in groups.items()}}
    line = [full[p] for p in spec.positive]
    first, last = line[0], line[-1]
    if last.ts - first.ts > spec.within:
        return False
    seen = []
    for name, _, kind in spec.places:
        if kind != "negated":
            seen.append(name)
            continue
        for e in at(name):
            after = not seen or order(full[seen[-1]]) < order(e)
            rest = spec.positive[len(seen) :]
            before = not rest or order(e) < order(full[rest[0]])
            edge = (seen or e.ts >= last.ts - spec.within) and (rest or e.ts <= first.ts + spec.within)
            if after and before and edge and true([*spec.positive, name], {**full, name: e}):
                return False
    grouped = {e for g in groups.values() for e in g}
    for i, (one, two) in enumerate(pairwise(spec.positive)):
        begin, end = order(full[one]), order(full[two])
        if spec.selection == "STRICT" and any(begin < order(e) < end and e not in grouped for e in events):
            return False
        if spec.selection == "NEXT":
            first_there = order(groups[two][0]) if two in groups else end
            known = spec.positive[: i + 1]
            for e in at(two):
                if begin < order(e) < first_there and true([*known, two], {**full, two: e}):
                    return False
    return True
