"""Errors and warnings of fedmf, and the import of optional packages.

`FedMFError` catches all errors of fedmf and of secagg.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from secagg import MissingExtra as MissingExtra
from secagg import ParameterError, SecAggError

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


def optional(module: str, use: str) -> Any:
    """Import a module of an optional package, which has a use such as "draws the noise".

    Raises MissingExtra if the package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = package.replace("_", "-")
        raise MissingExtra(
            f"{name}, which {use}, is not installed: pip install {name}", name=package
        ) from error
