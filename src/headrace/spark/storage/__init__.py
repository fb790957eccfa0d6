"""File systems, and what lies in a checkpoint."""
