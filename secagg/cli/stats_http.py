"""Commands ``secagg stats serve`` and ``secagg stats join``: a study over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secagg import statistics
from secagg._files import replace_file
from secagg.cli import suites
from secagg.cli.addresses import (
    AggregatorKey,
    Authority,
    CertificateFile,
    Client,
    ClientIdentity,
    Colluders,
    Deadline,
    HelpersFile,
    Host,
    KeyFile,
    Members,
    Name,
    OperatorPort,
    Patience,
    PlainHttp,
    Port,
    RegistryFile,
    SecurityOption,
    State,
    Url,
)
from secagg.cli.budgets import BudgetDelta, open_spending, spent_as_document, spent_in_words
from secagg.cli.console import (
    Json,
    Log,
    LogJson,
    as_security,
    command,
    counted,
    file_option,
)
from secagg.cli.files import read_registry
from secagg.cli.hosting import Hosting, attend
from secagg.cli.lines import fact, log_as
from secagg.cli.notices import notices
from secagg.cli.studies import (
    LEAST,
    RESULT,
    START,
    STUDY,
    Data,
    MinCount,
    MinSites,
    PerParameter,
    PlanFile,
    first_params,
    open_ledger,
    policy_of,
    print_result,
    read_plan,
    require_scipy,
    site_of,
    tell_step,
    write_study,
)
from secagg.cli.suites import RequireHybrid, SuiteOption
from secagg.cli.sums import Aggregator, prepare_files, summed
from secagg.errors import ParameterError, RemoteProtocolError, SecAggError
from secagg.kit.table import as_json as to_json
from secagg.oneshot import OneShotParams
from secagg.protocol import Registry, RoundParams

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from secagg.session import Session
    from secagg.statistics import Site, Study
    from secagg.statistics.sessions import Ask, Summed

_LATE = "; join before the first step ends, in one process, and ask the server's operator"
SERVE = (
    START + "secagg stats serve study.toml sites.json --out study --folder state\n\n"
    "secagg stats serve study.toml sites.json --out study --helpers h.json --identity a.pem\n"
)
JOIN = (
    START + "secagg stats join https://study.example:8443 study.toml patients.csv "
    "--client north --identity north.pem --ledger patients.ledger\n\n"
    "secagg stats join … --budget 4 --privacy-ledger patients.privacy\n\n"
    "secagg stats join … --colluders 1\n"
)


def serve(
    plan: PlanFile,
    registry: RegistryFile,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help=f"Folder for {RESULT}, and for {STUDY}, which secagg stats report reads. Keep "
            f"{STUDY} private: the sums of few records are in it, too.",
        ),
    ],
    folder: State = None,
    name: Name = "study",
    security: SecurityOption = "semi-honest",
    suite: SuiteOption = None,
    deadline: Deadline = 600.0,
    helpers: HelpersFile = None,
    identity: AggregatorKey = None,
    authority: Authority = None,
    host: Host = "127.0.0.1",
    port: Port = 8443,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    operator_port: OperatorPort = 8445,
    allow_plain_http: PlainHttp = False,
    log: Log = None,
    log_json: LogJson = False,
    as_json: Json = False,
) -> None:
    """Run a study with the sites that come, and print the result.

    Sites run `secagg stats join`. With --folder the same command goes on after a kill. Without
    --folder, a study with helpers that was killed needs a new plan: sites report once a step.
    """
    with command():
        log_as(log, json=log_json)
        agreed, known = read_plan(plan), read_registry(registry)
        if len(known) < (needed := max(3, agreed.min_sites)):
            raise ParameterError(
                f"the registry has {counted(len(known), 'site')}, and this plan needs "
                f"{needed}; add sites with secagg identity register"
            )
        kind, chosen = as_security(security), suites.as_chosen(suite)
        aggregator = Aggregator.of(helpers, identity, authority, plain=allow_plain_http)
        if agreed.privacy is not None and agreed.privacy.by_helpers != (aggregator is not None):
            whose, remedy = "sites", "leave --helpers and --identity out"
            if agreed.privacy.by_helpers:
                whose, remedy = "helpers of one-shot sums", "give --helpers and --identity"
            raise ParameterError(f"the plan has noise, which the {whose} add; {remedy}")
        require_scipy()
        prepare_files(out, (RESULT, STUDY), folder)
        hosting = Hosting(
            known, name, folder, deadline, kind, host, port, certificate, key, operator_port,
            allow_plain_http,
        )  # fmt: skip
        studies = list[statistics.Study]()
        # a resumed run must name its one-shot sums as before
        run_id = f"{name} ".encode() + (b"" if folder is not None else os.urandom(8))
        keys = [(one.hpke, one.ed25519) for one in aggregator.helpers] if aggregator else []

        async def work(session: Session) -> None:
            suites.announce(first, chosen)
            way = statistics.rounds(session, len(known), security=kind, suite=chosen)
            if aggregator is not None:
                way = statistics.one_shot(
                    session, len(known), run_id, keys, aggregator.endorsed, security=kind
                )
            told = _Told(way, known)
            studies.append(await statistics.collect(agreed, told, progress=told.begin))
            write_study(out, studies[0])

        first = first_params(agreed, len(known), name, run_id, keys, kind, chosen)

        async def run() -> None:
            if aggregator is not None and isinstance(first, OneShotParams):
                await aggregator.ensure(first)
            await hosting.run(work)

        with notices(study=True):
            asyncio.run(run())
        result = statistics.Result.of(studies[0])
        replace_file(out / RESULT, result.to_json())
        fact(f"result: {out / RESULT}")
        print_result(result, json=as_json)


class _Told:
    """Way to sums that prints the steps, with the number of sites."""

    def __init__(self, way: Ask, registry: Registry) -> None:
        self._way, self._registry = way, registry
        self._sites = f"up to {counted(len(registry), 'site')}"

    async def __call__(self, study: Study, sites: Collection[int] | None) -> Summed:
        result = await self._way(study, sites)
        if sites is None:
            fact(f"step 1: {summed(result, self._registry)}")
            if len(result.survivors) < len(self._registry):
                fact(
                    "The study goes on without these sites. Do not repeat the study with them: "
                    "the difference of the two results would be their numbers."
                )
        self._sites = counted(len(result.survivors), "site")
        return result

    def begin(self, step: int, numbers: int) -> None:
        """Print that a step begins."""
        tell_step(step, numbers, self._sites)


class _Answers:
    """Site that keeps the reason why it declined a step."""

    def __init__(self, site: Site) -> None:
        self._site, self.refused = site, ""
        self.each_attempt = site.each_attempt

    def __call__(
        self, message: bytes, params: RoundParams | OneShotParams
    ) -> NDArray[np.int64]:
        try:
            return self._site(message, params)
        except RemoteProtocolError as error:
            self.refused = str(error)
            raise


def join(
    url: Url,
    plan: PlanFile,
    data: Data,
    client: Client,
    identity: ClientIdentity,
    ledger: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Ledger of the table: its plans, and the answered steps. Keep the file: a "
            "restarted site goes on with it. A new file is made.",
        ),
    ],
    registry: Members = None,
    helpers: HelpersFile = None,
    colluders: Colluders = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="EPS",
            help="ε that all studies over this table may spend together, whatever the server, "
            "for the plans' unit. A step without room in it, or without noise, is declined. "
            "Needs --privacy-ledger.",
            show_default="no budget",
        ),
    ] = None,
    delta: BudgetDelta = None,
    privacy_ledger: Annotated[
        Path | None,
        file_option(
            "Ledger of what the studies have spent; made if missing. Give all studies over the "
            "same records the same file, one for each unit, and never copy, restore or delete "
            "it."
        ),
    ] = None,
    require_hybrid: RequireHybrid = False,
    authority: Authority = None,
    patience: Patience = 600.0,
    min_count: MinCount = LEAST["min_count"],
    min_sites: MinSites = LEAST["min_sites"],
    records_per_parameter: PerParameter = LEAST["records_per_parameter"],
    allow_plain_http: PlainHttp = False,
    log: Log = None,
    log_json: LogJson = False,
    as_json: Json = False,
) -> None:
    """Take part in a study with a table, until the study ends.

    The whole table is read and judged before the first byte is sent. A server with another plan
    gets no answer.
    """
    with command():
        log_as(log, json=log_json)
        policy = policy_of(min_count, min_sites, records_per_parameter)
        kept = open_ledger(ledger)
        agreed = read_plan(plan)
        unit = "client" if agreed.privacy is None else agreed.privacy.ledger_unit
        if budget is not None and agreed.privacy is None:
            # before a file is made, which has a unit
            raise ParameterError(
                f"the plan has no noise, and no budget, as {budget}, allows a sum without "
                "noise; leave out --budget, or agree on a plan with [privacy]"
            )
        spending = open_spending(
            privacy_ledger, budget, delta,
            active=registry is not None, option="--privacy-ledger", colluders=colluders,
            unit=unit,
        )  # fmt: skip
        site = site_of(agreed, data, policy, kept, spending)
        answers = _Answers(site)
        done, hint = attend(
            url, client, answers, identity, registry, helpers, authority, patience,
            allow_plain_http=allow_plain_http,
            ledger=kept.cohorts(site.plan), colluders=colluders,
            require_hybrid=require_hybrid,
        )  # fmt: skip
        steps = sorted(number + 1 for number in done.rounds + done.reports)
        if as_json:
            document = {"client": client, "steps": steps}
            typer.echo(to_json(document | spent_as_document(spending)))
        else:
            typer.echo(f"steps answered: {', '.join(map(str, steps)) or 'none'}")
            if spending is not None:
                typer.echo(spent_in_words(spending))
        # the session ended in order, but a script must see the failure
        if answers.refused:
            raise SecAggError(answers.refused)
        if not steps:
            raise SecAggError(
                f"the study ended, and site {client} answered no step{hint or _LATE}"
            )
