"""Log of a site, which FLARE can send to the server: it has no texts of private errors."""

from __future__ import annotations

import logging

from secagg.errors import SecAggError

logger = logging.getLogger("secagg.flare")


def log_class(what: str, error: Exception) -> None:
    """Log the class of an error and its failed check; the text at the level DEBUG only."""
    check = getattr(error, "check", None)
    logger.warning(
        "%s ended with %s%s", what, type(error).__name__, f", check {check}" if check else ""
    )
    logger.debug("%s failed", what, exc_info=error)


def log_rejection(what: str, error: Exception) -> None:
    """Log an error before any training: the text, too, if it is an error of this package."""
    log_class(what, error)
    if isinstance(error, SecAggError):  # of the server's parameters and the site's policy
        logger.warning("%s", error)
