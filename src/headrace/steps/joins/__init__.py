"""Joins: rows of two sides that meet."""
