"""The judge: what any plan means, computed from the definitions over the whole sorted history. Slow and obvious on purpose."""
