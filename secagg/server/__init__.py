"""Server of the protocol: it has no secret of its own and learns one sum.

Each phase is a stage that takes messages and closes into the next stage (`stages`). Masked
inputs are added as they come (`masked_sum`). The last stage asks for shares (`unmasking`) and
rebuilds seeds from them (`recovery`). The server is a fold over the accepted messages, so a
`secagg.Journal` of them is enough to resume it.
"""

from __future__ import annotations

from secagg.server.log import Entry, Log
from secagg.server.result import RoundResult
from secagg.server.server import Server

__all__ = ["Entry", "Log", "RoundResult", "Server"]
