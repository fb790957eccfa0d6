"""What runs in a bucket, as data."""
