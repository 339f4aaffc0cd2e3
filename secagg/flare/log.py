"""Log of a site, without texts of private errors, since FLARE can send logs to the server."""

from __future__ import annotations

import logging

from secagg.errors import SecAggError

logger = logging.getLogger("secagg.flare")


def log_class(what: str, error: Exception) -> None:
    """Log the class of an error and the failed check; the text at the level DEBUG only."""
    check = getattr(error, "check", None)
    logger.warning(
        "%s ended with %s%s", what, type(error).__name__, f", check {check}" if check else ""
    )
    logger.debug("%s failed", what, exc_info=error)


def log_rejection(what: str, error: Exception) -> None:
    """Log an error before any training, for errors of this package with the text."""
    log_class(what, error)
    # such an error quotes the server's parameters and the site's policy, nothing private
    if isinstance(error, SecAggError):
        logger.warning("%s", error)
