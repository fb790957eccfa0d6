"""Exact continuous queries over event streams that arrive out of order, on Apache Spark."""
