"""Text -> syntax."""
