"""The errors of fedmf: each says what was wrong, with the value and the remedy."""

from __future__ import annotations

__all__ = ["DataError", "FedMFError", "MissingExtra", "ModelError", "SettingError"]


class FedMFError(Exception):
    """Base of every error that fedmf raises on purpose."""


class DataError(FedMFError):
    """A data set is unknown, missing or damaged; the message names file and line."""


class MissingExtra(FedMFError, ModuleNotFoundError):
    """A part of fedmf needs a package that is not installed; the message says which extra."""


class ModelError(FedMFError):
    """A saved model cannot be read, or a model is used before it is trained."""


class SettingError(FedMFError, ValueError):
    """A hyper-parameter is refused; the message names it, its value and the remedy."""
