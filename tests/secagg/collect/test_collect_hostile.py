"""Attacks on a collection: by the collector, by writers of the database, and by strangers."""

from __future__ import annotations

import numpy as np
import pytest
from test_collect_client import VECTOR, send, served

from collect_parts import Collected, Databases
from oneshot_parties import parties
from secagg import ParameterError
from secagg.collect import batches
from secagg.collect.reports import Verdict
from secagg.testing import make_identity


async def test_check53_client_with_an_identity_reports_in_active_sums_only(
    databases: Databases,
) -> None:
    with parties(security="semi-honest") as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            with pytest.raises(ParameterError):
                await send(made, url, 1, identity=make_identity(1))
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 0


@pytest.mark.parametrize("vector", [VECTOR * 101, np.full(4, np.nan), VECTOR[1:]], ids=str)
async def test_check52_client_reports_whatever_its_numbers_are(
    databases: Databases, vector: np.ndarray
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            with pytest.raises(ParameterError):
                await send(made, url, 1, vector=vector)
        assert collected.send([(1, b"another")]) == [Verdict.OTHER]
