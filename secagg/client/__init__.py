"""Client of the protocol: bytes in, bytes out.

A client lives for one session and one vector. `states` has one immutable state per phase, with
only the secrets still needed; `checks` has every check of the server's messages; `lifecycle`
prevents reuse: a copy, a fork or a second thread could mask another vector with the same masks.
"""

from __future__ import annotations

from secagg.client.client import Client

__all__ = ["Client"]
