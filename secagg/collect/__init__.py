"""One-shot sums of many processes, which a database coordinates.

Reports are independent, and accumulators merge. So any number of processes without a state of
their own share the work: they take reports, add slices of a batch, and open the sum. All that
decides is in rows of a database, PostgreSQL or SQLite in a file (`secagg.collect.schema`). A
batch goes through the states of `secagg.collect.states`.

1. A report is acknowledged after the commit. The same bytes again are acknowledged and change
   nothing; another report of the client is rejected.
2. Insertions and the transition to *closing* exclude each other by the batch's row, so the list
   has every acknowledged report, except reports that helpers reject. There is one list.
3. A `Worker` leases a slice. A lease that ran out is taken again, with another token, and a
   result with an old token is not stored. Rejections by helpers are stored with the slice.
4. Reports are kept until the sum is stored. Ids, digests of reports and sums remain.

A reader of the database learns what the aggregator of the sums learns, the sums included. A
writer is a lying aggregator, and in a semi-honest sum a lying aggregator reads any client's
vector. Only helpers protect a list from a second list: a database that is restored from a copy
may fix another list. Honest helpers with the first list in their journals reject this list. No
list opens without such a helper, since active sums have a quorum, and semi-honest sums 2t > ℓ,
if no helper pools with the aggregator. No session is begun with a smaller threshold.
"""

from __future__ import annotations

from pathlib import Path

from secagg.collect.application import begin_session, close_batch, lead, open_batches
from secagg.collect.batches import Batch
from secagg.collect.close import Closer
from secagg.collect.close import drop as drop_batch
from secagg.collect.database import Database
from secagg.collect.helpers import Asking
from secagg.collect.schema import migrate
from secagg.collect.sessions import StoredSession
from secagg.collect.sqlite import SQLite
from secagg.collect.states import State
from secagg.collect.work import Worker
from secagg.errors import needing

__all__ = [
    "Asking",
    "Batch",
    "Closer",
    "Database",
    "State",
    "StoredSession",
    "Worker",
    "begin_session",
    "close_batch",
    "drop_batch",
    "lead",
    "open_batches",
    "open_database",
]


def open_database(where: str, *, new: bool = False) -> Database:
    """Return a database with the tables of collections, which are made or migrated.

    Parameters
    ----------
    where : str
        URL of PostgreSQL, "postgresql://user@host/name"; or the path of a file of SQLite.
    new : bool
        True: a missing file of SQLite is made. False: a missing file is an error.

    Raises
    ------
    DatabaseError
        The database cannot be reached, or has tables of a newer version.
    MissingExtra
        psycopg is not installed.
    """
    database: Database
    if where.startswith(("postgresql://", "postgres://")):
        with needing(
            "a collection in PostgreSQL", "'secagg[postgres]'", "psycopg", "psycopg_pool"
        ):
            from secagg.collect.postgres import PostgreSQL
        database = PostgreSQL(where)
    else:
        database = SQLite(Path(where).absolute(), new=new)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database
