"""Windows: rows enter, rows leave, and aggregates are read in between."""
