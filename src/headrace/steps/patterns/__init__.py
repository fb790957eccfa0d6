"""Sequence patterns."""
