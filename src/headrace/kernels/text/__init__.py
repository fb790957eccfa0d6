"""Text cut into records and fields: bytes in, positions out."""
