"""Standard output and error of the commands, which print in any encoding.

Redirected output on Windows, or output under a locale without UTF-8, has a smaller encoding.
This encoding lacks some symbols that the commands print, or letters of names and titles.
"""

from __future__ import annotations

import codecs
import errno
import sqlite3
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper

_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_DATABASE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})

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


@contextmanager
def full_output_in_one_line(program: str) -> Iterator[None]:
    """End with one line and exit status 1 if the output of a command cannot be written.

    The interpreter would print the error of its last flush, in several lines.
    """
    code: object = None
    try:
        yield
    except SystemExit as end:
        code = end.code or 0
    # an error that no command expects
    except OSError as error:
        code = _failed(program, error)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader closed the pipe
        code = code or 1
    except OSError as error:
        # a command that failed has printed a line already
        code = code or _failed(program, error)
    if code is not None:
        raise SystemExit(code)


def _failed(program: str, error: OSError) -> int:
    """Print the error of an output, and return the exit status."""
    # stderr may be full, too
    with suppress(OSError):
        print(f"{program}: {unwritten(error)}", file=sys.stderr, flush=True)
    return 1


def is_of_disk(error: BaseException | None) -> bool:
    """Return True if an error, or an error behind that error, is of a full or broken disk."""
    while error is not None:
        if isinstance(error, OSError):
            return error.errno in _DISK
        # of sqlite3; the low byte is the kind of an extended code
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DATABASE:
            return True
        error = error.__context__
    return False


def unwritten(error: OSError) -> str:
    """Return the message for a file, or the output of a command, that cannot be written."""
    what = error.filename or "the output"
    return (
        f"{what} cannot be written: {error.strerror or error}; free some space, or write to "
        "another place"
    )


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return similar text in ASCII for characters that cannot be encoded, and their end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start : error.end]
    return "".join(map(_similar, part)), error.end


def _similar(character: str) -> str:
    """Return similar text in ASCII: a symbol in words, a letter without accents.

    A character without similar text is escaped.
    """
    if character in SYMBOLS:
        return SYMBOLS[character]
    kind, _, letter = unicodedata.name(character, "").rpartition(" LETTER ")
    if kind.startswith("GREEK") and letter.isalpha():
        return letter.capitalize() if kind.endswith("CAPITAL") else letter.lower()
    raised = "^" if unicodedata.decomposition(character).startswith("<super>") else ""
    # NFKD writes ½ with U+2044, a fraction slash beyond ASCII
    parts = unicodedata.normalize("NFKD", character).replace("⁄", "/")
    plain = parts.encode("ascii", "ignore").decode()
    return raised + plain if plain else ascii(character)[1:-1]
