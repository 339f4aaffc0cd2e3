"""The protocol of Bonawitz et al. 2017, common to client and server; it does no I/O.

Client u holds x_u. With every neighbour v it agrees on a mask seed s_uv, and it draws its own
seed b_u. It sends y_u = x_u + PRG(b_u) + Σ_{v>u} PRG(s_uv) − Σ_{v<u} PRG(s_uv) mod R. In the
sum of the survivors' y_u the pairwise masks cancel. The survivors' PRG(b_u) and the pairwise
masks with dropped-out clients are left. The server removes them with Shamir shares: of b_u for
a survivor, of s_u for a client that dropped out, never both.

`phases` defines the order of messages for client and server. `params` has the parameters of a
round, `policy` a client's demands, `messages` the frames, `keys` the secrets and masks.
"""

from __future__ import annotations

from secagg.protocol.identities import Identity, Registry
from secagg.protocol.params import RoundParams
from secagg.protocol.phases import NEXT, Phase
from secagg.protocol.policy import ClientPolicy

__all__ = ["NEXT", "ClientPolicy", "Identity", "Phase", "Registry", "RoundParams"]
