"""How rows and what is known of them travel between stages, in a few large cells."""
