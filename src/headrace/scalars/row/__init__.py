"""Scalar expressions over one row, as one Python function with the meaning that Spark SQL gives them under ANSI.

`functions.py` lists what is offered. Anything else is refused when it is compiled: nothing here is nearly what Spark says.
"""
