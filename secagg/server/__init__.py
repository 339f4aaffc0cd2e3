"""Server of the protocol, without a secret: the server learns one sum.

A `Server` has one object of `stages` for each phase, which collects the clients' messages and
makes the next stage from them. Masked inputs are added as they arrive. The last stage, in
`unmasking`, asks for shares, rebuilds the seeds of the masks and removes the masks. The
accepted messages determine the server's state, so a `secagg.Journal` of them can resume the
server.
"""

from __future__ import annotations

from secagg.server.log import Entry, Log
from secagg.server.result import RoundResult
from secagg.server.server import Server

__all__ = ["Entry", "Log", "RoundResult", "Server"]
