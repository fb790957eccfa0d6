"""Sources as DataFrames, with the time and the place of every row."""
