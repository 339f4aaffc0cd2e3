"""Text of others, made safe to print and to log."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text whose control characters, and all others that do not print, are escaped.

    A server chooses the text of its errors. Raw, it could move the cursor of a terminal, forge
    lines of a log or reverse the order of letters. ``ESC`` becomes ``\x1b``, a line feed
    ``\n``, and a lone surrogate ``\ud800``.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text
    )
