"""Every event answered by itself: topics per entity, task processors that stay (003; decisions/0033)."""
