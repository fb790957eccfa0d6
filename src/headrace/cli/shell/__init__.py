"""`headrace shell`."""
