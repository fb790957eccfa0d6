"""Rows packed, exchanged, and handed to the buckets."""
