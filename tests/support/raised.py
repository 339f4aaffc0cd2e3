"""Assertions on the errors that calls raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from secagg import RemoteProtocolError


def rejects(check: str, call: Callable[[], object]) -> RemoteProtocolError:
    """Return the RemoteProtocolError of this check that the call raises."""
    with pytest.raises(RemoteProtocolError) as caught:
        call()
    assert caught.value.check == check
    return caught.value
