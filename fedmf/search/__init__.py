"""Choice of settings inside the training ratings: cross-validation, and search over a grid.

`cross_validate` scores a single model on folds of the ratings. `search` scores every candidate
of a grid on the same validation part or folds. Split off the test ratings before, and pass the
training ratings alone.

**A search costs privacy.** Each candidate is a whole federated training per fold. The server
sees all sums of every training; a refit is one more training. A budget of noise would be spent
again each time. So a model with a setting ``epsilon`` raises SettingError, unless
``public=True`` states that the ratings are public.
"""

from __future__ import annotations

from fedmf.search.grid import search
from fedmf.search.scoring import Candidate, Scores, SearchResult, cross_validate

__all__ = ["Candidate", "Scores", "SearchResult", "cross_validate", "search"]
