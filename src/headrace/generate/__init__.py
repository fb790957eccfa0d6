"""Made-up event streams in arrival order, the same bytes for the same seed, whatever rows are asked for and in what cuts."""

from headrace.generate.events import KINDS, SCHEMAS, events
from headrace.generate.options import Options, parse_options

__all__ = ["KINDS", "SCHEMAS", "Options", "events", "parse_options"]
