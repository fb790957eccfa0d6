"""Windows that aggregate: for every event, or when they are looked at."""
