"""Grouping keys for buckets that spread evenly over shuffle partitions."""

from __future__ import annotations

from functools import cache

MASK = 0xFFFFFFFF


def _rotate(x: int, by: int) -> int:
    return ((x << by) | (x >> (32 - by))) & MASK


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an INT column, as hash partitioning uses it."""
    k = (_rotate((value * 0xCC9E2D51) & MASK, 15) * 0x1B873593) & MASK
    h = (_rotate(seed ^ k, 13) * 5 + 0xE6546B64) & MASK
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & MASK
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


@cache
def labels(count: int) -> tuple[int, ...]:
    """`count` integers whose hashes are 0, 1, 2, .. modulo `count`, so any number of partitions gets an even share."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(murmur3(candidate) % count, candidate)
        candidate += 1
    return tuple(found[i] for i in range(count))
