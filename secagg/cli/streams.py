"""Standard output and error of the commands, which print in any encoding.

Output that is redirected on Windows, or under a locale without UTF-8, has an encoding that
lacks some of the symbols that the commands print, or letters of names and titles.
"""

from __future__ import annotations

import codecs
import sys
import unicodedata
from io import TextIOWrapper

HANDLER = "secagg.cli"
SYMBOLS = {
    "–": "-", "—": "-", "−": "-", "‑": "-", "…": "...", "·": "*", "×": "x", "±": "+/-",
    "≤": "<=", "≥": ">=", "≈": "~", "≠": "!=", "→": "->", "←": "<-", "∞": "inf", "√": "sqrt",
    "Σ": "sum", "∈": "in", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "‖": "||",
    "µ": "u", "‘": "'", "’": "'", "“": '"', "”": '"', "•": "*", "│": "|", "─": "-",
    "λ": "lambda", "Λ": "Lambda",
    "ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "œ": "oe",
}  # fmt: skip


def print_in_any_encoding() -> None:
    """Let stdout and stderr replace the characters that their encodings lack."""
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return similar text in ASCII for what cannot be encoded, and its end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    return "".join(map(_similar, part)), error.end


def _similar(character: str) -> str:
    """Return similar text in ASCII: a symbol in words, a letter without its accents.

    A character without any is escaped.
    """
    if character in SYMBOLS:
        return SYMBOLS[character]
    kind, _, letter = unicodedata.name(character, "").rpartition(" LETTER ")
    if kind.startswith("GREEK") and letter.isalpha():
        return letter.capitalize() if kind.endswith("CAPITAL") else letter.lower()
    raised = "^" if unicodedata.decomposition(character).startswith("<super>") else ""
    parts = unicodedata.normalize("NFKD", character).replace("⁄", "/")
    plain = parts.encode("ascii", "ignore").decode()
    return raised + plain if plain else ascii(character)[1:-1]
