"""Errors that fedmf raises. `FedMFError` catches all of them, and the errors of secagg."""

from __future__ import annotations

from secagg import MissingExtra, ParameterError, SecAggError

__all__ = [
    "DataError",
    "DataWarning",
    "Diverged",
    "FedMFError",
    "MissingExtra",
    "ModelError",
    "SettingError",
]

# One base and one error for settings in both packages: `except FedMFError` catches them all.
FedMFError = SecAggError
SettingError = ParameterError


class DataError(FedMFError):
    """A data set is unknown, missing or damaged; the message names the file and the line."""


class DataWarning(UserWarning):
    """Ratings that are read, but perhaps not as meant; the message names the lines."""


class Diverged(SettingError):
    """A training has left the scale of the ratings; the message names the setting to change."""


class ModelError(FedMFError):
    """A saved model cannot be read, or a model is used before the training."""
