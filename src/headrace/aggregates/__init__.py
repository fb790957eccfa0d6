"""Aggregates: what is kept per key as rows enter and leave a window, and the result columns that are read from it."""
