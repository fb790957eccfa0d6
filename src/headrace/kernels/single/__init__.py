"""One event a call, compiled all through: it is placed among the open rows, read, and the state moved on to the frontier."""
