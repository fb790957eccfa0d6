"""The signed, totally ordered changelog: what flows between operators and out of queries."""
