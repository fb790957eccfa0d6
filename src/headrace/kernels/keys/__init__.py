"""Identity and order of rows and keys."""
