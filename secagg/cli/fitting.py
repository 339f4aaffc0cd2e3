"""Help of the commands at any width: panels on a wide terminal, plain lines on a narrow one."""

from __future__ import annotations

import inspect
import re
from typing import Any

from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

_PANELS, _LONGEST = 80, 0.25
"""Least width of panels, and the longest name of an option, as a part of the width: panels cut
names on a narrower terminal."""


def joined(text: str | None) -> str | None:
    """Return a docstring with each paragraph as one line, which the terminal's width wraps."""
    if text is None:
        return None
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


class FittingCommand(TyperCommand):
    """Command whose help fits the terminal."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings["help"] = joined(settings.get("help"))
        super().__init__(*arguments, **settings)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, in panels if they fit."""
        width = Console().width
        longest = max(len(name) for one in self.get_params(ctx) for name in one.opts)
        fits = width >= _PANELS and longest <= _LONGEST * width
        self.rich_markup_mode = "rich" if fits else None
        formatter.width = width - 2
        super().format_help(ctx, formatter)
        # typer escapes brackets for panels
        lines = "".join(formatter.buffer).replace("\\[", "[").split("\n")
        formatter.buffer = ["\n".join(_broken(line, width) for line in lines)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples of a help without panels, without markup."""
        if self.epilog:
            formatter.write_paragraph()
            formatter.write_text(Text.from_markup(inspect.cleandoc(self.epilog)).plain)


def _broken(line: str, width: int) -> str:
    """Return a line with a long list of choices, broken after some of the choices."""
    parts = list[str]()
    while len(line) > width and (end := line.rfind("|", 0, width) + 1):
        parts.append(line[:end])
        line = " " * 6 + line[end:]
    return "\n".join([*parts, line])
