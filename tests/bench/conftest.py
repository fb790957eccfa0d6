import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # benchmarks/ is no part of the package
