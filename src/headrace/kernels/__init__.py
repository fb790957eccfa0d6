"""Pure columnar functions on NumPy arrays, compiled with Numba: no plan, no Spark."""
