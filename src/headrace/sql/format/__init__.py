"""Text -> the same text in its one form."""
