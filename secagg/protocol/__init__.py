"""The protocol of Bonawitz et al. 2017, common to client and server, without I/O.

Client u holds x_u. Client u agrees on a mask seed s_uv with every neighbour v, and draws a seed
b_u alone. The client sends y_u = x_u + PRG(b_u) + Σ_{v>u} PRG(s_uv) − Σ_{v<u} PRG(s_uv) mod R.
In the sum of the survivors' y_u the pairwise masks cancel. The survivors' PRG(b_u) and the
pairwise masks with dropped-out clients are left. The server removes these masks with Shamir
shares: of b_u for a survivor, of s_u for a client that dropped out, never both.

The modules: `phases` defines the order of messages, `params` the parameters of a round,
`params_bytes` their layout and `policy` a client's demands on them. `noise` has the noise and
its shares. `shape` has the parameters of every sum, and `bounds` the bounds of a client's
input. `ledger` has the cohorts of earlier rounds.
`messages` encodes the messages. `keys`, `sealing` and `pair_masks` derive the secrets, with
`kem` in suite hybrid; `suites` has the names. `dealing` hashes what a dealer signs, and `masks`
adds the masks. `client_ids` makes ids of names, `identities` signs, and `traffic` counts bytes.
"""

from __future__ import annotations

from secagg.protocol.bounds import Bounds
from secagg.protocol.client_ids import client_id
from secagg.protocol.identities import Identity, Registry
from secagg.protocol.ledger import CohortLedger
from secagg.protocol.noise import Noise
from secagg.protocol.params import RoundParams
from secagg.protocol.phases import NEXT, Phase
from secagg.protocol.policy import ClientPolicy

__all__ = [
    "NEXT",
    "Bounds",
    "ClientPolicy",
    "CohortLedger",
    "Identity",
    "Noise",
    "Phase",
    "Registry",
    "RoundParams",
    "client_id",
]
