"""What runs in a bucket: windows say which rows enter and leave, tallies keep an aggregate per key."""
