"""Options, errors and names of clients that all commands share."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandFunctionType

from secagg import __version__
from secagg._printable import printable
from secagg._warned import warnings_in_one_line
from secagg.cli.fitting import FittingCommand, joined
from secagg.cli.lines import LEVELS, Form, form, say
from secagg.cli.streams import (
    full_output_in_one_line,
    is_of_disk,
    print_in_any_encoding,
    unwritten,
)
from secagg.cli.words import in_words_of
from secagg.errors import ParameterError, SecAggError
from secagg.kit.timing import INTERRUPTED
from secagg.protocol import client_ids
from secagg.protocol.client_ids import ClientKey, Names
from secagg.protocol.shape import Security

Document = dict[str, Any]


def flag(name: str, text: str) -> Any:
    """Return an option without a value, with a help text."""
    return typer.Option(name, metavar="", help=text)


def file_option(text: str, *names: str, shown: str | bool = True) -> Any:
    """Return an option for a file, with a help text, other names and the default to show."""
    return typer.Option(*names, metavar="FILE", help=text, show_default=shown)


Clients = Annotated[int, typer.Option(help="Number of clients, n.")]
Corrupt = Annotated[
    float, typer.Option(help="Largest fraction of the clients that collude with the server.")
]
Dropout = Annotated[float, typer.Option(help="Largest fraction of the clients that drop out.")]
Length = Annotated[int, typer.Option(help="Number of elements of a vector, d.")]
Clip = Annotated[float, typer.Option(help="Largest absolute value of an element.")]
ModulusBits = Annotated[
    int | None,
    typer.Option(
        help="Bits b of the modulus 2^b, and of an element in a message. By default words "
        "of 32 bits, which need no packing; RoundParams.suggest and `secagg serve` take as few "
        "bits as the sum needs, for smaller messages.",
        show_default="32, or as many as the sum needs",
    ),
]
FittingBits = Annotated[
    int | None,
    typer.Option(
        help="Bits b of the modulus 2^b, and of an element in a message.",
        show_default="as few as the sum needs",
    ),
]
Sigma = Annotated[
    int, typer.Option(help="Largest probability that a client is exposed, as 2^-sigma.")
]
Json = Annotated[bool, flag("--json", "Print one JSON document in place of the table.")]


Log = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(LEVELS),
        help="Print what happens on standard error, with times in UTC, from this level on.",
        show_default="warnings and waits, without times",
    ),
]
LogJson = Annotated[
    bool,
    flag("--log-json", "Print each line on standard error as a JSON object, from info on."),
]


def _print_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(f"{context.find_root().info_name} {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version",
        metavar="",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
]


def examples(*commands: str) -> str:
    """Return the end of a command's help, with example commands."""
    return "\n[bold]Examples[/bold]\n\n" + "\n\n".join(commands) + "\n"


_SECURITY: tuple[Security, ...] = ("semi-honest", "active")


def as_security(name: str) -> Security:
    """Return the security of a name, or raise `ParameterError`."""
    if name not in _SECURITY:
        raise ParameterError(f"security must be semi-honest or active, not {name!r}")
    return name


class App(typer.Typer):
    """Typer application with the settings that all applications of this project share."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"cls": Group, "rich_markup_mode": "rich"}
        usual |= {"add_completion": False, "pretty_exceptions_enable": False}
        super().__init__(**usual | settings)

    def command(
        self, name: str | None = None, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Return the decorator that adds a command."""
        return super().command(name, cls=_Command, **settings)


_NAMED = 20
"""Most clients that a line names."""
_running = ContextVar[Sequence[Any]]("_running", default=())
"""Options and arguments of the command that runs."""
_named = ContextVar[Mapping[int, str]]("_named", default={})  # noqa: B039 -- never changed
"""Names of clients, by id."""


class _Command(FittingCommand):
    def invoke(self, ctx: Any) -> Any:
        # a process can run several commands, and names of earlier clients must not stay
        _running.set(self.params)
        _named.set({})
        form.set(Form())
        return super().invoke(ctx)

    def get_help_option(self, ctx: Any) -> Any:
        return _as_flag(super().get_help_option(ctx))


class Group(TyperGroup):
    """Group of commands, which prints in any encoding and warns in one line."""

    def __init__(self, **settings: Any) -> None:
        settings["help"] = joined(settings.get("help"))
        super().__init__(**settings)

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run a command; see `typer.core.TyperGroup`."""
        print_in_any_encoding()
        program = str(self.name)
        with full_output_in_one_line(program), warnings_in_one_line(program, with_options):
            return super().main(*arguments, **settings)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, which takes no value."""
        return _as_flag(super().get_help_option(ctx))


def _as_flag(option: Any) -> Any:
    if option is not None:
        # typer 0.29 lists --help with the type <bool>
        option.metavar = ""
    return option


_OTHER_NAMES = (
    ("n", "clients"),
    ("n_clients", "clients"),
    ("n_users", "users"),
    ("epsilon", "budget"),
    ("digest", "parameters"),
)
"""Names in errors, with the names of the options."""


def with_options(text: str) -> str:
    """Replace Python in an error by options of the running command, and ids by names.

    Characters that do not print are escaped, since servers and files have a part in the text.
    """
    names = {one.name for one in _running.get()}
    options = {one.name: one.opts[0] for one in _running.get() if one.opts[0].startswith("--")}
    text = in_words_of(text, options, client={"url", "client"} <= names)
    text = re.sub(r"FixedPoint\(clip=([^,)]+)[^)]*\)", r"\1", text)
    options |= {name: options[option] for name, option in _OTHER_NAMES if option in options}
    if "fractional_bits" not in options:
        text = re.sub(r"raise fractional_bits( to \d+,|, or) ", "", text)
    if "clip" in options:
        text = text.replace("take a larger clip,", f"take a larger {options['clip']},")
    for name, option in options.items():
        # before other values: a flag has no value on the command line
        text = re.sub(rf"(?<![-\w]){name}=True\b", option, text)
        start, value = rf"^{name} (?==|is\b|must\b)", rf"(?<![-\w]){name}=(?=\w)"
        text = re.sub(f"{start}|{value}", f"{option} ", text)
    return printable(re.sub(r"\bclient (\d+)\b", _with_name, text))


def _with_name(found: re.Match[str]) -> str:
    name = _named.get().get(int(found[1]))
    return found[0] if name is None else f"client {name} ({found[1]})"


def call_clients(keys: Iterable[ClientKey]) -> None:
    """Show the names of clients beside their ids in what this command prints."""
    names = Names()
    names.keys(keys)
    _named.set(names.shown)


def called(client: int) -> str:
    """Return the name of a client, or the id if this command knows no name."""
    return client_ids.called(client, _named.get())


def first_of(names: Sequence[str]) -> str:
    """Return names with commas; of many names, the first 20 and the number of the others."""
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED:,} more" if len(names) > _NAMED else shown


def counted(number: int, what: str = "client") -> str:
    """Return a number of clients, or of other things, in words, such as "1 client"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


@contextmanager
def command() -> Iterator[None]:
    """Print an error of the block, or Ctrl-C, as one line, and exit with a code.

    The code is 2 for an error of this library, 1 for an error of the machine such as a full
    disk, and 130 for Ctrl-C.
    """
    try:
        yield
    except BrokenPipeError:
        # the reader closed the pipe; click ends quietly
        raise
    except (SecAggError, OSError, MemoryError, KeyboardInterrupt) as error:
        code, text = 1, f"cannot go on: {error}"
        match error:
            case SecAggError():
                code, text = 1 if is_of_disk(error) else 2, str(error)
            case MemoryError():
                text = f"out of memory: {error}"
            case KeyboardInterrupt():
                code, text = INTERRUPTED, "interrupted"
            case OSError(errno=errno.EADDRINUSE, strerror=str(why)):
                # Python appends "(while attempting to bind …)", which repeats the address
                address = why.partition(" (while")[0]
                text = f"{address}; end the program that uses it, or take another port"
            case OSError() if is_of_disk(error):
                text = unwritten(error)
        # a MemoryError often has no text after the colon
        shown = with_options(text.removesuffix(": "))
        # stderr may be full, too
        with suppress(OSError):
            say(shown, logging.ERROR)
        raise typer.Exit(code) from None
