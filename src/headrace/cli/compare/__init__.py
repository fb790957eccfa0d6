"""`headrace compare`."""
