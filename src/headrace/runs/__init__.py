"""What a run tells whoever watches it."""
