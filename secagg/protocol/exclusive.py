"""One call at a time: kernels release the GIL, so two threads could be inside one machine.

Two masked inputs under the same masks would give away their difference, and two additions to
one total would lose one. The second caller is told, not made to wait: waiting is the caller's
business.
"""

from __future__ import annotations

from types import TracebackType

from secagg.errors import LocalProtocolError

__all__ = ["Exclusive"]


class Exclusive:
    """A context that only one thread is in.

    Raises
    ------
    LocalProtocolError
        On entering while another thread is inside.
    """

    def __init__(self) -> None:
        self._token = [True]

    def __enter__(self) -> None:
        try:
            self._token.pop()  # atomic: of two threads one gets it
        except IndexError:
            raise LocalProtocolError(
                "another call of this machine is under way; call it from one thread at a time"
            ) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._token.append(True)
