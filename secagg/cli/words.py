"""Words of Python in the remedies of errors, and the words of the command that runs.

A remedy names options of the running command only. Options of another command follow that
command's name, such as "secagg serve --clip". A remedy that no command has is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OPTION = re.compile(r"(\bsecagg (?:helper |identity |stats |collect )?\w+ )?(--[\w-]+)")
_ASK = "ask the server's operator"
_ACTIVE = "secagg serve --security active, or secagg collect begin --security active"

_WORDS: Mapping[str, tuple[str, ...]] = {
    "tls=(certificate, key)": ("--certificate and --key",),
    "tls=… (secagg join --authority)": ("--authority",),
    "wait longer with Deadlines(gather=…)": ("take a longer --deadline",),
    "wait longer with Deadlines(reports=…)": ("take a longer --deadline",),
    "take a smaller min_clients, which the helpers' policies accept": (
        "take a larger --dropout if secagg helper serve --min-clients of all helpers allows it",
    ),
    "registry=secagg.Registry({id: identity.public, …})": (
        "--registry",
        "secagg helper serve --registry",
    ),
    "register identity.public under its id": ("register it with secagg identity register",),
    "leave the registry out": ("leave out --registry",),
    "security='active' at the server": (_ACTIVE,),
    "security='active'": ("--security active", _ACTIVE),
    ", or require_active=False in the policy": ("",),
    "suite='hybrid' at the server": ("secagg serve --suite hybrid",),
    ", or require_hybrid=False in the policy": (", or leave out --require-hybrid", ""),
    " at the server, or state others in the client's policy: bounds=secagg.Bounds(encoding, "
    "max_weight)": ("",),
    "one_shot_policy is missing": ("--helpers is missing",),
    "take_part(one_shot_policy=OneShotPolicy(helpers=…))": ("--helpers",),
    "OneShotPolicy(helpers=…)": ("--helpers",),
    "pass HelperJournal.public to OneShotParams(helpers=…)": (
        "list what secagg helper keygen printed in secagg serve --helpers",
    ),
    "for two pass OneShotPolicy(min_clients=2, corrupt=0.0)": (
        "for two take --min-clients 2 and --corrupt 0",
        f"{_ASK} for three clients or more",
    ),
    "for two pass ClientPolicy(min_clients=2, allow_two_clients=True)": (
        f"{_ASK} for three clients or more",
    ),
    "no threshold is safe from so many; lower corrupt": (
        f"no threshold is safe from so many; {_ASK} for more clients",
    ),
    "no threshold is safe from so many; lower colluders": (
        "no threshold is safe from so many; take fewer --colluders",
    ),
    " for the sum (on Flower to OneShot), or lower it in the policy": (" for the sum",),
    "raise the clip, which FixedPoint.suggest proposes": (
        "raise --clip",
        "have secagg serve --clip raised",
    ),
    "HelperJournal.create": ("secagg helper keygen",),
    "begin a new round or session with a new journal": (
        "take another --folder, --name and --out",
        "begin a new session, with new keys of secagg helper keygen",
    ),
    "take parameters with noise=secagg.Noise(sigma), or a client without spending": (
        f"{_ASK} for noise, secagg serve --epsilon or secagg collect begin --noise, or leave "
        "out --budget",
    ),
    "take parameters with a larger sigma": (
        f"{_ASK} for more noise, secagg serve --noise or --epsilon, or secagg collect begin "
        "--noise",
    ),
    "take fewer colluders, or more survivors": (
        "take fewer --colluders, or a larger --min-survivors",
        "take a smaller --corrupt or --dropout",
    ),
    "colluders is": ("--colluders is", "the number of clients of --corrupt is"),
    "min_survivors is": (
        "--min-survivors is",
        "the number of clients that --dropout leaves is",
    ),
    "take more neighbours, or a larger threshold": (
        "take more --neighbours, or a larger --threshold",
        "take a larger --threshold, or fewer --colluders",
        "take a larger --threshold, or a smaller --corrupt",
        "take a smaller --corrupt",
    ),
    "take fewer colluders, or a larger threshold": (
        "take fewer --colluders, or a larger --threshold",
        "take a smaller --corrupt",
    ),
    "take Study.message()": ("take a file study.bin of secagg stats serve",),
    **{
        f"pass SitePolicy({name}=…)": (f"take a smaller --{name.replace('_', '-')}",)
        for name in ("min_count", "min_sites", "records_per_parameter")
    },
    ", or accept that: RoundParams(n_clients=2, threshold=2, …, allow_two_clients=True)": ("",),
    ", or pass a longer patience": (", or pass a longer --patience", ""),
    "pass a longer patience": ("pass a longer --patience", "try again later"),
}
"""Words of Python, each with replacements: the first that suits the command is used."""

_POLICY = re.compile(
    r", or (lower|raise) (min_\w+|max_\w+|corrupt|colluders)( if the memory suffices)?"
    r"(?:, dropout or sigma)?(?![\w=])"
)
_OF_HELPERS = ("min_clients", "corrupt", "max_length", "max_clients")


def in_words_of(text: str, options: Mapping[str, str], *, client: bool) -> str:
    """Return the text of an error with the options of a command.

    Parameters
    ----------
    text : str
    options : mapping of str to str
        Options of the command, such as "--modulus-bits", by the names of their parameters.
    client : bool
        True for the command of a client, as the server chooses a client's parameters.
    """
    known = set(options.values())
    for python, ways in _WORDS.items():
        if python in text:
            fit = (way for way in ways if _has_options(way, known))
            text = text.replace(python, next(fit, python))

    def policy(found: re.Match[str]) -> str:
        verb, name, memory = found.groups(default="")
        # the command of a client has one option for the policy: other remedies are cut
        if client:
            counts = name in ("corrupt", "colluders") and "colluders" in options
            return ", or take fewer --colluders" if counts else ""
        if "helpers" in options and name in _OF_HELPERS:
            option = f"secagg helper serve --{name.replace('_', '-')}"
        elif name not in options:
            return found[0]
        else:
            option = options[name]
        return f", or {verb} {option}{memory}"

    text = _POLICY.sub(policy, text)
    if {"helpers", "corrupt"} <= options.keys():
        text = text.replace("take min_clients of", "take a larger --corrupt for min_clients of")
    text = re.sub(r"\bmin_clients of (\d+)", r"\1 clients", text)
    if client and re.search(r"policy|this client's|if .* collude", text):
        text = re.sub(r"neighbours=(\d+) and threshold=", r"\1 neighbours and t = ", text)
        text = re.sub(r"pass min_clients=(\d+)", r"take \1 clients", text)
        text = re.sub(r"Noise\(sigma, colluders=(\d+)\)", r"secagg serve --colluders \1", text)
        text = text.replace("; take ", f"; {_ASK} to take ")
    if "reopen" in options:
        text = text.replace("give the list up", "drop the batch with secagg collect drop")
        text = text.replace("; take another number", "")
    # a site of a study has another server, and no vector
    if "ledger" in options and "vector" not in options:
        text = re.sub(
            r"\bsecagg serve (?=--(security|suite|helpers))", "secagg stats serve ", text
        )
        text = text.replace(", or secagg collect begin --security active", "")
        text = re.sub(r"\bsecagg serve --colluders (\d+)", r"a plan with colluders \1", text)
    return text


def _has_options(words: str, known: set[str]) -> bool:
    """Return True if a command has the options in a text, except options of other commands."""
    return all(command or option in known for command, option in _OPTION.findall(words))
