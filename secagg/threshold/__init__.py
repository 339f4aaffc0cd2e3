"""Decryption of sums by t of l trustees together (Damgård and Jurik, PKC 2001).

A dealer makes a key with `deal`, gives every trustee a share of the key (Shamir 1979, over
Z_{n p' q'}), and deletes the key. Clients encrypt with ``ThresholdKey.public_key`` as with any
other key. To decrypt a sum, t trustees each send a partial decryption, with a proof of
correctness (Shoup, Eurocrypt 2000). Anybody can combine t partial decryptions with
`ThresholdKey.combine`, which names the trustee of a wrong partial decryption.

Any t trustees together can decrypt everything, also single vectors; fewer than t can decrypt
nothing. If more than l − t shares are lost, no sum can be decrypted.

**No single party can decrypt, as long as the aggregator follows the protocol.** The number of
vectors in a sum is in an unauthenticated header. An aggregator can write n into the header of a
single client's vector, or multiply the vector by n, and combine the honest trustees' answers.
Trustees who do not trust the aggregator must add the clients' authenticated messages
themselves, and decrypt nothing else.

**The dealer knows the key while dealing.** Run the dealer in private on a machine that is wiped
afterwards. Hand out the shares over channels that only their trustees can read. A dealer that
keeps a copy of the key can decrypt everything, and no proof would show the copy.
"""

from __future__ import annotations

from secagg.threshold.dealing import deal, deal_insecure
from secagg.threshold.key import ThresholdKey
from secagg.threshold.partials import PartialDecryption
from secagg.threshold.share import KeyShare

__all__ = ["KeyShare", "PartialDecryption", "ThresholdKey", "deal", "deal_insecure"]
