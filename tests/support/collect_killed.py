"""Script: a command of `secagg` that kills itself before a statement of its database.

Arguments are the number of the statement, from 0, and the words of the command. The clock is
later by an hour for each statement, so leases of processes that died before have run out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import secagg.collect
from collect_faults import Interposed, Kill
from secagg.cli import main
from secagg.collect import Database
from secagg.collect.database import Transaction


class Later(Interposed):
    """Database that ends this process, with a clock of the future."""

    def __init__(self, database: Database, at: int) -> None:
        self.at = at
        super().__init__(database, Kill(at))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as tx:
            now = tx.now
            tx.now = lambda: now() + 3600.0 * self.at  # type: ignore[method-assign]
            yield tx


if __name__ == "__main__":
    at, opened = int(sys.argv[1]), secagg.collect.open_database
    secagg.collect.open_database = lambda where, new: Later(opened(where, new=new), at)
    sys.argv[1:] = sys.argv[2:]
    main()
