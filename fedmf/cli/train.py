"""``fedmf train``: train a recommender, print the errors, and save model and history."""

from __future__ import annotations

import json
import signal

import typer
from rich.console import Console

from fedmf.aggregate import PaillierSum, RoundAborted
from fedmf.cli import choices
from fedmf.cli import train_options as flags
from fedmf.cli.doubts import BETTER, doubts, going_on, interrupted_line
from fedmf.cli.manners import (
    Columns,
    Duplicates,
    Scale,
    Table,
    errors_in_one_line,
    make_folder,
    stderr,
)
from fedmf.cli.models import DELTA, KINDS, Order, fit, measured, ranked, suited
from fedmf.cli.own import TABLE, ratings_of
from fedmf.cli.ranker import Ranker, train_ranker
from fedmf.cli.report import LiveReport, document, holder_name, key_line, print_summary, save
from fedmf.cli.start import (
    NOT_COMPARED,
    OF_MODEL,
    compared,
    continued,
    forgotten,
    is_of,
    load_start,
)
from fedmf.errors import SettingError
from secagg.cli.console import Json
from secagg.kit.timing import INTERRUPTED, undisturbed

COMMON = ("model", "seed", "dropout", "split")  # options that all models take
OPTIONS = (*COMMON, *OF_MODEL, "epsilon", "mask", "cohort", "head", "start")
WORSE = 1  # exit code if the start is kept, as the model is worse

EXAMPLES = """
[bold]Examples[/bold]

fedmf train  [dim]# 300 simulated users under secure aggregation[/dim]

fedmf train --out runs/demo  [dim]# write model, history and learning curve[/dim]

fedmf train --dropout 0.1 --threshold 31  [dim]# a tenth of the users drops out[/dim]

FEDMF_DATA=~/movielens fedmf train --data ml-100k --aggregation plain

fedmf train --data ratings.csv --columns user,item,rating --scale 1,5 --out runs/own

fedmf train --model implicit --out runs/best  [dim]# a model that ranks items[/dim]

fedmf train --data all.csv --scale 1,5 --start runs/own --out runs/own  [dim]# go on[/dim]

fedmf train --model dpease --epsilon 4  [dim]# the same with differential privacy[/dim]

fedmf train --model fedmmf --mask ridge --head  [dim]# use genres and year privately[/dim]

fedmf train --model dpfedmf --epsilon 1  [dim]# ratings with differential privacy[/dim]

fedmf train --aggregation plain --json > run.json  [dim]# for other programs[/dim]

fedmf train --model fedmf --cohort 30 --aggregation paillier --trust key-holder
"""


def train(
    context: typer.Context,
    data: Table = "simulated",
    columns: Columns = None,
    scale: Scale = None,
    duplicates: Duplicates = None,
    model: flags.Model = None,
    mask: flags.Mask = None,
    head: flags.Head = False,
    aggregation: flags.Aggregation = "secagg",
    neighbours: flags.Neighbours = None,
    threshold: flags.Threshold = None,
    suite: flags.Suite = None,
    helpers: flags.Helpers = None,
    trust: flags.Trust = None,
    trustees: flags.Trustees = None,
    bits: flags.Bits = None,
    cohort: flags.Cohort = None,
    dropout: flags.Dropout = None,
    rounds: flags.Rounds = None,
    seed: flags.Seed = None,
    split: flags.SplitOption = None,
    k: flags.Factors = None,
    reg: flags.Reg = None,
    rate: flags.Rate = None,
    min_raters: flags.MinRaters = None,
    epsilon: flags.Epsilon = None,
    start: flags.Start = None,
    force: flags.Force = False,
    out: flags.Out = None,
    no_ranking: flags.NoRanking = False,
    as_json: Json = False,
) -> None:
    """Train a recommender while each user keeps their ratings.

    Ctrl-C and SIGTERM end the training early and keep the model of the finished rounds.
    """
    console = stderr()
    with errors_in_one_line("before the training began; nothing is kept"):
        words = context.params | {"cohort": choices.cohort(cohort), "head": head or None}
        options = {name: words[name] for name in OPTIONS if words[name] is not None}
        said = None
        if start is not None:
            options, said = continued(start, options)
        model = options.get("model", "fedbpmf")
        kind = KINDS[model]
        kind.check(model, {name: options[name] for name in options if name not in COMMON})
        head = head or kind.headed
        given = {name: options[name] for name in (*OF_MODEL, "epsilon") if name in options}
        seed = options.get("seed", 0)
        masked = choices.masked(model, mask)
        holder = holder_name(trust, one_shot=aggregation == "one-shot")
        live = LiveReport(console, kind.rounds if rounds is None else rounds, holder)
        sums = {name: words[name] for name in choices.OF_SUMS}
        summing = choices.aggregation(aggregation, sums, live.phase)
        summing.set_params(**kind.sums)
        order = Order(
            given=given,
            masked=masked,
            common={
                "aggregation": summing,
                "seed": seed,
                "cohort": options.get("cohort"),
                "dropout": options.get("dropout", 0.0),
            },
            rounds=live.rounds,
            report=live.round_done,
            progress=live.advanced,
            start=None if start is None else load_start(start, model),
        )
        trainer = kind.build(order)
        spent = getattr(trainer, "epsilon", None)
        if out is not None:
            make_folder(out)
        table = {name: words[name] for name in TABLE}
        ratings, source = ratings_of(**table)
        if said is not None and order.start is not None:
            console.print(said, soft_wrap=True)
            if (lost := forgotten(order.start, ratings)) is not None:
                console.print(f"warning: {lost}", style="yellow", soft_wrap=True)
        if (line := suited(trainer, ratings.n_items, rounds)) is not None:
            live.expect(trainer.rounds)
            console.print(line, soft_wrap=True)
        split = options.get("split", "random")
        parts = choices.split(ratings, split, seed)
        if isinstance(summing, PaillierSum):
            warning = f"trust {summing.trust}: {summing.warning}"
            console.print(warning, style="yellow", soft_wrap=True)
            console.print(key_line(summing), soft_wrap=True)
        second, since, keep_old = Ranker(None, False, 0.0), None, False
        try:
            with live:
                fitted = fit(trainer, kind, parts, order, head=head)
                history, saved = trainer.history_, choices.as_saved(fitted)
                if start is not None and order.start is not None and len(history):
                    with undisturbed(signal.SIGTERM):
                        since = compared(order.start, fitted, ratings, parts)
                    console.print(str(since or NOT_COMPARED), soft_wrap=True)
                    worse = since is not None and since.worse and not force
                    keep_old = worse and out is not None and is_of(start, out)
                # exact sums beside noised ones would undo their noise
                wanted = out is not None and not (kind.ranks or no_ranking or spent)
                wanted = wanted and saved is not None and not keep_old
                if wanted and not history.interrupted:
                    second = train_ranker(parts, order.common, given, live.advanced, console)
        except RoundAborted as error:
            raise SettingError(
                f"every round was aborted ({error}): {choices.REMEDIES[aggregation]}"
            ) from error
        recorded: dict[str, object] = {
            **source,
            "model": model,
            "options": given,
            "split": split,
            "mask": None if masked is None else repr(masked.mask),
            "head": head,
            "epsilon": spent,
            "delta": None if spent is None else DELTA,
            "start": None if start is None else str(start.resolve()),
        }
        interrupted, more = history.interrupted or second.interrupted, {}
        try:
            more = measured(trainer, kind, fitted, parts, head=head)
            if second.factors is not None:
                own = {"k": second.factors.k, "seconds": second.seconds}
                more["ranking_model"] = own | ranked(second.factors, parts)
        except KeyboardInterrupt:
            # the models are kept all the same
            interrupted = True
        if since is not None:
            more["since_start"] = since._asdict()
        result = document(recorded, trainer, more)
        for doubt in doubts(result["result"], parts.train, ranks=kind.ranks):
            console.print(f"warning: {doubt}", style="yellow", soft_wrap=True)
        try:
            if out is not None and len(history) and not keep_old:
                with undisturbed(signal.SIGTERM):
                    save(out, trainer, (saved, second.factors), result, console)
        finally:
            # the result can still be read if the disk is full
            if as_json:
                typer.echo(json.dumps(result, indent=2))
            elif len(history):
                print_summary(Console(highlight=False), result)
        if keep_old and out is not None:
            console.print(BETTER.format(out=out), style="yellow", soft_wrap=True)
        if interrupted:
            kept = out is not None and not keep_old
            line = interrupted_line(len(history), out, saved=kept)
            console.print(line, style="yellow", soft_wrap=True)
            if out is not None and wanted and len(history) and second.factors is None:
                again = {
                    **table,
                    "aggregation": None if aggregation == "secagg" else aggregation,
                    **sums,
                    "head": head,
                    "rounds": rounds,
                }
                # the chain of FedBPMF begins again, with all rounds
                if model != "fedbpmf":
                    again["rounds"] = max(1, live.rounds - len(history))
                line = going_on(out, again, starts="start" in kind.takes)
                console.print(line, style="yellow", soft_wrap=True)
            raise typer.Exit(INTERRUPTED)
        if keep_old:
            raise typer.Exit(WORSE)
