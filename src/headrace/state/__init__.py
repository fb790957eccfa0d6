"""What a bucket keeps: rows, numbered keys, sealed chunks, and their bytes."""
