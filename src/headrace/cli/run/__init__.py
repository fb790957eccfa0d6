"""`headrace run`."""
