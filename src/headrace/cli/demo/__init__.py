"""`headrace demo`."""
