"""Sequence patterns: rows linked by place and key, and the searches along the links."""
