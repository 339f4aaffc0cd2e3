"""The client of the protocol: bytes in, bytes out.

A client lives for one session and one vector. `states` has one immutable state per phase, with
only the secrets still needed; `checks` has every check of what the server sends; `lifecycle`
keeps a client from a second life, in which another vector would go under the same masks.
"""

from __future__ import annotations

from secagg.client.client import Client

__all__ = ["Client"]
