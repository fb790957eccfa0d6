"""What is in a file: its format, its layout, its records. No Spark."""
