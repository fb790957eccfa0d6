"""Exact sums: columns of accumulators, and their values, rounded once."""
