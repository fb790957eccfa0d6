"""One batch for one bucket: clock, reservoir, operators, release. Knows nothing of Spark and assumes no micro-batch."""
