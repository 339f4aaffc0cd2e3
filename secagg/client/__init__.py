"""Client of the protocol: bytes in, bytes out.

A `Client` takes part in one round with one vector. The module `states` defines the secrets
that a client keeps in each phase, and `checks` validates the server's messages. `sharing`
deals the shares of round 1. `opening` answers the boxes of round 2, by way of `boxes` and
`complaints`, and `masked_input` masks the input. `lifecycle` prevents a second use, by a copy,
a fork or another thread. A second use could mask another vector with the same masks. A
`SealingKey` spans the rounds of a session. `stored` packs the state of a client that continues
in another process. `spending` has the interface of a ledger of privacy.
"""

from __future__ import annotations

from secagg.client.client import Client
from secagg.client.spending import Spending
from secagg.client.states import SealingKey
from secagg.client.stored import KeySlot

__all__ = ["Client", "KeySlot", "SealingKey", "Spending"]
