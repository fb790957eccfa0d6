"""What Spark's operators and functions do with single values that are not NULL. Where Spark fails, they raise `Failed`."""
