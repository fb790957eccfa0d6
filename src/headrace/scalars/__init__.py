"""Scalar expressions over the columns of several rows, compiled to machine code."""
