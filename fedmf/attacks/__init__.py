"""Attacks of an honest-but-curious server, in the clear and under secure aggregation.

`leakage`, `inversion` and `singletons` run attacks end to end, on a training in the clear and
on the same training under secure aggregation. Under secure aggregation `leakage` and
`inversion` do no better than guessing.

- **Plain gradients give the ratings away.** `from_two_rounds` solves for a user's ratings with
  the gradients of two rounds. `from_one_round` needs one round, if ratings are on a grid.
- **Personalised masks do not protect.** `from_ridge` undoes the masks, given the items' public
  features and one number per user. The paper's indicator J and the paper's own two attacks,
  `recovery` and `ranking`, do not show that.
- **An exact sum over one user is that user's gradient.** `from_sum` reads the gradient from
  secure sums at items with a single rater. ``FedMF(min_raters=3)`` leaves such items out.
- **An exact item–item table is most users' profiles.** `from_gram` peels the profiles off, a
  profile at a time. `peeled` is the share of users found: 93 % in ml-100k.
"""

from __future__ import annotations

from fedmf.attacks.leakage import (
    Seen,
    Unmasked,
    from_one_round,
    from_ridge,
    from_sum,
    from_two_rounds,
)
from fedmf.attacks.masked_ratings import ranking, recovery
from fedmf.attacks.observed import Outcome
from fedmf.attacks.peeling import from_gram, gram_of, peeled
from fedmf.attacks.trials import chosen, inversion, leakage, on_masked_ratings, singletons

__all__ = [
    "Outcome",
    "Seen",
    "Unmasked",
    "chosen",
    "from_gram",
    "from_one_round",
    "from_ridge",
    "from_sum",
    "from_two_rounds",
    "gram_of",
    "inversion",
    "leakage",
    "on_masked_ratings",
    "peeled",
    "ranking",
    "recovery",
    "singletons",
]
