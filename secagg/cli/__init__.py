"""The command ``secagg``: results on stdout, progress and errors on stderr."""

from __future__ import annotations

from secagg.cli.commands import app, main

__all__ = ["app", "main"]
