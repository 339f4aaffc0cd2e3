"""The command ``fedmf``: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import sys

try:
    from secagg._warned import warnings_in_one_line

    # code without kernels warns at the import, before the application can shape warnings
    with warnings_in_one_line("fedmf"):
        from fedmf.cli import attack, data, export, recommend, search, train
        from secagg.cli.console import App, Version
except ModuleNotFoundError as error:
    missing = str(error.name).partition(".")[0]
    if missing not in ("typer", "rich"):
        raise
    print(
        f'fedmf: the command line needs {missing}: pip install "secagg[cli]"', file=sys.stderr
    )
    raise SystemExit(2) from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

__all__ = ["app", "main"]

app = App(name="fedmf", no_args_is_help=True)


@app.callback()
def root(version: Version = False) -> None:
    """Train federated recommenders through secure aggregation."""


app.command(epilog=train.EXAMPLES)(train.train)
app.command(epilog=search.EXAMPLES)(search.search)
app.command(epilog=recommend.EXAMPLES)(recommend.recommend)
app.command("export", epilog=export.EXAMPLES)(export.export_)
app.command(epilog=attack.EXAMPLES)(attack.attack)
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app()
