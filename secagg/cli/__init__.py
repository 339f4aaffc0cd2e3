"""The command ``secagg``: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import sys
from typing import Any

from secagg._warned import warnings_in_one_line

try:
    from secagg.errors import MissingExtra, needing

    # code without kernels warns at the import, before the application can shape warnings
    with (
        needing("the command line", '"secagg[cli]"', "typer", "rich"),
        warnings_in_one_line("secagg"),
    ):
        from secagg.cli import (
            bench,
            collect,
            helper,
            identity,
            join,
            judge,
            one_shot,
            params,
            report,
            serve,
            simulate,
            stats,
            verify,
        )
        from secagg.cli.console import App, Group, Version
except KeyboardInterrupt:
    raise SystemExit(130) from None
except MissingExtra as error:
    print(f"secagg: {error}", file=sys.stderr)
    raise SystemExit(2) from None

__all__ = ["app", "main"]


class _Root(Group):
    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Take ``params --one-shot`` of earlier releases for ``one-shot params``, until 1.1."""
        if args[:1] in (["params"], ["simulate"]) and "--one-shot" in args:
            now = f"secagg one-shot {args[0]}"
            print(f"secagg: {args[0]} --one-shot goes with secagg 1.1: {now}", file=sys.stderr)
            args = ["one-shot", *(word for word in args if word != "--one-shot")]
        return super().parse_args(ctx, args)


app = App(name="secagg", cls=_Root, no_args_is_help=True)


@app.callback()
def root(version: Version = False) -> None:
    """Estimate, try, measure and run secure aggregation."""


app.command(epilog=params.EXAMPLES)(params.params)
app.command(epilog=simulate.EXAMPLES)(simulate.simulate)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=join.EXAMPLES)(join.join)
app.command(epilog=verify.EXAMPLES)(verify.verify)
app.command(epilog=judge.EXAMPLES)(judge.judge)
app.command(epilog=report.EXAMPLES)(report.report)
app.add_typer(collect.app, name="collect")
app.add_typer(one_shot.app, name="one-shot")
app.add_typer(helper.app, name="helper")
app.add_typer(identity.app, name="identity")
app.add_typer(stats.app, name="stats")


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app()
