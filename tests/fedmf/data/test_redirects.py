"""Where a download may be led."""

from __future__ import annotations

import urllib.request
from email.message import Message

import pytest

import fedmf.data.fetch.download
from fedmf.errors import DataError


def test_a_redirection_never_leaves_https_not_even_for_this_machine():
    handler = fedmf.data.fetch.download._SafeRedirects()
    start = urllib.request.Request("https://example.org/a.zip")
    answer = (None, 302, "Found", Message())
    with pytest.raises(DataError, match="which is not https: refused"):
        handler.redirect_request(start, *answer, "http://127.0.0.1/a.zip")
    on = handler.redirect_request(start, *answer, "https://example.org/b.zip")
    assert on.full_url == "https://example.org/b.zip"
