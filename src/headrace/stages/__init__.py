"""Plan to stages: the parts of a plan that need one partitioning, each lowered to a program for the task processor."""
