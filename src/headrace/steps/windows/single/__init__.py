"""Windows, one event a call: the same state as in batches, moved and read by one compiled call."""
