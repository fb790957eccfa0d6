"""Events in durable, ordered partitions that are read again at will: what serving stands on (003, 3.1)."""
