"""The command ``fedmf``: results on stdout, progress and errors on stderr."""

from __future__ import annotations

from fedmf.cli.commands import app, main

__all__ = ["app", "main"]
