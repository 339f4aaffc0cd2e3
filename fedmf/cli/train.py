"""``fedmf train``: train a recommender, print its errors, and save the model and history."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fedmf.aggregate import PaillierSum, RoundAborted
from fedmf.cli import choices
from fedmf.cli.choices import LAST, MaskName, ModelName, SplitName, SumName
from fedmf.cli.compared import NOT_COMPARED, compared
from fedmf.cli.doubts import doubts
from fedmf.cli.ending import BETTER, going_on, interrupted_line
from fedmf.cli.manners import (
    Columns,
    Duplicates,
    Scale,
    Table,
    errors_in_one_line,
    make_folder,
    stderr,
)
from fedmf.cli.models import DELTA, KINDS, Order, fit, measured, ranked
from fedmf.cli.own import ratings_of
from fedmf.cli.ranker import Ranker, train_ranker
from fedmf.cli.report import LiveReport, document, holder_name, key_line, print_summary, save
from fedmf.cli.start import OF_MODEL, continued, forgotten, is_of, load_start
from fedmf.errors import SettingError
from fedmf.models import PRESETS
from secagg.bench.timing import INTERRUPTED, undisturbed
from secagg.cli.console import Json

COMMON = frozenset({"model", "seed", "dropout", "split"})  # options that all models take
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

fedmf train --model dpfedmf --epsilon 8  [dim]# noise for differential privacy[/dim]

fedmf train --aggregation plain --json > run.json  [dim]# for other programs[/dim]

fedmf train --model fedmf --cohort 30 --aggregation paillier --trust key-holder
"""


def train(
    data: Table = "simulated",
    columns: Columns = None,
    scale: Scale = None,
    duplicates: Duplicates = None,
    model: Annotated[
        ModelName | None,
        typer.Option(
            help="The model to train. "
            + "; ".join(f"{name}: {kind.about}" for name, kind in KINDS.items())
            + ".",
            show_default="fedbpmf",
        ),
    ] = None,
    mask: Annotated[
        MaskName | None,
        typer.Option(
            help="fedmmf: the model that each user fits first, to genres and year (Last.fm: to "
            "tags). A model with nn is not written to --out.",
            show_default="ridge",
        ),
    ] = None,
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            metavar="",
            help="Correct the finished model on each user's own ratings.",
        ),
    ] = False,
    preset_name: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="fedmf, fedmmf: the hyper-parameters: "
            + "; ".join(f"{name}: {one.about}" for name, one in PRESETS.items())
            + ".",
            show_default="fast",
        ),
    ] = None,
    aggregation: Annotated[
        SumName,
        typer.Option(
            help="The sum of the gradients: by secret sharing, by one message and helpers, by "
            "homomorphic encryption, or in the clear."
        ),
    ] = SumName.SECAGG,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="secagg: the number of neighbours of each user, even, or 0 for all users.",
            show_default="all up to 100 users, else 60",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            help="secagg: the number of shares that recover a user's masks. one-shot: the "
            "number of helpers that open a sum. paillier: the number of trustees that decrypt "
            "together.",
            show_default="secagg: two thirds; one-shot: 2",
        ),
    ] = None,
    helpers: Annotated[
        int | None,
        typer.Option(help="one-shot: the number of helpers.", show_default="3"),
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option(
            help="paillier: the trust model, required: "
            f"{', '.join(choices.TRUST)}. Its warning is printed.",
            show_default=False,
        ),
    ] = None,
    trustees: Annotated[
        int | None,
        typer.Option(help="paillier, --trust threshold: the number of trustees."),
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option(help="paillier: the length of the key in bits.", show_default="3072"),
    ] = None,
    cohort: Annotated[
        str | None,
        typer.Option(
            help="The users of a round: a number such as 100, or a fraction such as 0.5.",
            show_default="all users",
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(
            help="The probability that a user drops out of a round.", show_default="0"
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="The number of rounds.", show_default="the model's")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="The seed of the split and of the training.", show_default="0"),
    ] = None,
    split: Annotated[
        SplitName | None,
        typer.Option(
            help="The test part: 20 % at random, the last 20 % of all by time, each user's "
            f"last {LAST} ratings, or an official fold of ml-100k.",
            show_default="random",
        ),
    ] = None,
    factors: Annotated[
        int | None,
        typer.Option(
            "--factors", "-k", help="k, the number of factors.", show_default="the preset's"
        ),
    ] = None,
    reg: Annotated[
        float | None,
        typer.Option(help="λ, the regularisation per rating.", show_default="the preset's"),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="γ, the learning rate.", show_default="the preset's")
    ] = None,
    min_raters: Annotated[
        int | None,
        typer.Option(
            help="The fewest raters of a trained item; a sum over one user hides nothing.",
            show_default="the preset's",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help=f"dpfedmf, dpease: ε for all ratings of a user together, with δ = {DELTA:g}. "
            "Noise is drawn from the operating system, not from --seed.",
            show_default="dpease: 8",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="The file or folder of an earlier training, from which this one continues, "
            "with its model and settings unless others are given; users and items are matched "
            "by id. --data has all ratings, the old and the new."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            metavar="",
            help="Let a model that is worse than its --start replace it in --out.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for model.fedmf, ranking.fedmf, history.json and curve.svg."
        ),
    ] = None,
    no_ranking: Annotated[
        bool,
        typer.Option(
            "--no-ranking",
            metavar="",
            help="Leave out ranking.fedmf, a small model of implicit feedback, of all users, "
            "that --out trains beside a model of ratings; fedmf recommend ranks by it.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a recommender while each user keeps their ratings.

    Ctrl-C and SIGTERM end the training early and keep the model of the finished rounds.
    """
    console = stderr()
    with errors_in_one_line("before the training began; nothing is kept"):
        options: dict[str, Any] = {
            "model": model,
            "k": factors,
            "reg": reg,
            "rate": rate,
            "min_raters": min_raters,
            "epsilon": epsilon,
            "preset": preset_name,
            "mask": mask,
            "cohort": choices.cohort(cohort),
            "head": head or None,
            "start": start,
            "seed": seed,
            "dropout": dropout,
            "split": split,
        }
        options = {name: one for name, one in options.items() if one is not None}
        said = None
        if start is not None:
            options, said = continued(start, options)
        model = options.get("model", ModelName.FEDBPMF)
        kind = KINDS[model]
        kind.check(model, {name: options[name] for name in options if name not in COMMON})
        given = {name: options[name] for name in (*OF_MODEL, "epsilon") if name in options}
        preset_name = options.get("preset", "fast")
        seed = options.get("seed", 0)
        chosen, masked = choices.chosen(model, mask, preset_name)
        default = chosen.rounds if kind.rounds is None else kind.rounds
        holder = holder_name(trust, one_shot=aggregation is SumName.ONE_SHOT)
        live = LiveReport(console, default if rounds is None else rounds, holder)
        summing = choices.aggregation(
            aggregation,
            neighbours=neighbours,
            threshold=threshold,
            helpers=helpers,
            trust=trust,
            trustees=trustees,
            bits=bits,
            progress=live.phase,
        )
        summing.set_params(**kind.sums)
        order = Order(
            given=given,
            preset=preset_name,
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
        if out is not None:
            make_folder(out)
        ratings, source = ratings_of(data, columns, scale, duplicates)
        if said is not None and order.start is not None:
            console.print(said, soft_wrap=True)
            if (lost := forgotten(order.start, ratings)) is not None:
                console.print(f"warning: {lost}", style="yellow", soft_wrap=True)
        split = options.get("split", SplitName.RANDOM)
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
                wanted = out is not None and not (kind.ranks or no_ranking or epsilon)
                wanted = wanted and saved is not None and not keep_old
                if wanted and not history.interrupted:
                    second = train_ranker(parts, order.common, given, live.advanced, console)
        except RoundAborted as error:
            raise SettingError(
                f"every round was aborted ({error}): {choices.REMEDIES[aggregation]}"
            ) from error
        spent = getattr(trainer, "epsilon", epsilon)  # by default of the model
        recorded: dict[str, object] = {
            **source,
            "model": str(model),
            "options": given,
            "preset": preset_name if "preset" in kind.takes else None,
            "split": str(split),
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
        except KeyboardInterrupt:  # the models are kept all the same
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
        finally:  # also if the disk is full
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
                    "data": data,
                    "columns": columns,
                    "scale": scale,
                    "duplicates": duplicates,
                    "aggregation": None if aggregation is SumName.SECAGG else aggregation,
                    "neighbours": neighbours,
                    "threshold": threshold,
                    "helpers": helpers,
                    "trust": trust,
                    "trustees": trustees,
                    "bits": bits,
                    "head": head,
                    "rounds": rounds,
                }
                if model != ModelName.FEDBPMF:  # whose chain begins again
                    again["rounds"] = max(1, live.rounds - len(history))
                line = going_on(out, again, starts="start" in kind.takes)
                console.print(line, style="yellow", soft_wrap=True)
            raise typer.Exit(INTERRUPTED)
        if keep_old:
            raise typer.Exit(WORSE)
