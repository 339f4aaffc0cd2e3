"""Text of others on terminals and in logs: nothing that is no letter reaches them raw."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from secagg import LinkError, RemoteProtocolError
from secagg._printable import printable

ESCAPED = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Controls, bidirectional marks and other formats, surrogates, separators of lines."""


@pytest.mark.parametrize("text", ["", "plain", "Zoë · 東京 ← “5 %”", "\\x1b"])
def test_text_that_prints_is_the_same(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\nb\tc\0", r"a\r\nb\tc\x00"),
        ("\x9b31m\x7f", r"\x9b31m\x7f"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_check55_controls_are_escaped(text, shown):
    assert printable(text) == shown


def test_every_code_point_is_printable_and_can_be_encoded():
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in ESCAPED:
            shown = printable(chr(code))
            assert shown.isascii()
            assert shown.isprintable()


def test_check55_errors_of_the_other_side_are_printable():
    evil = "\x1b]0;x\x07\ud800"
    wrong = RemoteProtocolError(evil, sender=None, phase=evil, check=evil)
    lost = LinkError(evil, check=evil)
    for text in (str(wrong), wrong.phase, wrong.check, str(lost), lost.check):
        assert text.isprintable()
        assert text.isascii()
