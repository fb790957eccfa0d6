"""Cells and offsets of serving, where any unit can reach them."""
