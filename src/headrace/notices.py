"""What a user should know though nothing has failed: said as a Python warning, and in the log."""

from __future__ import annotations

import logging
import warnings

LOG = logging.getLogger("headrace")
LOG.addHandler(logging.NullHandler())  # whoever wants the log configures it; a warning is seen anyway


class HeadraceWarning(UserWarning):
    """Something that is not what its user may think."""


def warn(text: str, *, where: str | None = None) -> None:
    """Say it, once for each text."""
    full = f"{where}: {text}" if where else text
    LOG.warning(full)
    warnings.warn(full, HeadraceWarning, stacklevel=2)
