"""Log of a site, which FLARE can send to the server: it has no texts of errors."""

from __future__ import annotations

import logging

__all__ = ["log_class", "logger"]

logger = logging.getLogger("secagg.flare")


def log_class(what: str, error: Exception) -> None:
    """Log the class of an error and its failed check; the text at the level DEBUG only."""
    check = getattr(error, "check", None)
    logger.warning(
        "%s ended with %s%s", what, type(error).__name__, f", check {check}" if check else ""
    )
    logger.debug("%s failed", what, exc_info=error)
