"""The Python processes of Spark."""
