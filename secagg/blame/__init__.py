"""Verdicts: proofs that a client broke the protocol, for everybody who has the registry.

In the active variant every client signs hashes of all shares dealt, accepted and revealed
(`secagg.protocol.dealing`). A server that finds a wrong share makes a proof of these signatures
with an `Accuser`. `check` judges a proof, and needs nothing but the registry and a policy.
docs/protocol.md, §14, has the formats and the argument why no honest client is convicted.
"""

from __future__ import annotations

from secagg.blame.building import Accuser, Dealing, Signed
from secagg.blame.judge import check

__all__ = ["Accuser", "Dealing", "Signed", "check"]
