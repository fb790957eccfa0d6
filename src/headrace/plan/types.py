"""Spark SQL types as text: what can be told from their spelling."""

from __future__ import annotations

import re

NUMERIC = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
INTEGRAL = ("TINYINT", "SMALLINT", "INT", "BIGINT")
NESTED = ("ARRAY", "MAP", "STRUCT")


def base_type(kind: str) -> str:
    """`DECIMAL(10, 2)` -> `DECIMAL`."""
    return re.split(r"[(<]", kind, maxsplit=1)[0].strip()


def decimal_parts(kind: str) -> tuple[int, int]:
    numbers = re.findall(r"\d+", kind)
    return (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0) if numbers else (10, 0)


def decimal(precision: int, scale: int) -> str:
    """A DECIMAL type within Spark's limit of 38 digits."""
    return f"DECIMAL({min(precision, 38)}, {min(scale, 38)})"
