"""The command line. Results go to standard output and nothing else does; messages and progress go to standard error."""
