"""The code of README, docs/ and examples/ runs as shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from effort import FULL, pure_repeats, scaled
from fedmf.aggregate import WARNINGS

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(
    r"^python secagg/examples/(\w+)\.py\n```\n.*?^```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)
SHOWN = dict(
    EXAMPLE.search(text).groups()
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if EXAMPLE.search(text := path.read_text())
)
"""The output of each example, as its page shows it."""
AS_MANY = """
from hypothesis import settings
settings.register_profile("as many", max_examples={})
settings.load_profile("as many")
"""
"""Examples that a test of a page draws: as many as the tests here."""


def blocks(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def run(*arguments: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,  # only so that a deadlock fails instead of lasting
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def example(name: str) -> str:
    """Return what an example prints, which has to be on its page if it has a page."""
    printed = run(f"examples/{name}.py")
    assert SHOWN.get(name, "") in printed
    return printed


def test_each_example_that_a_page_shows_runs_here() -> None:
    ran = re.findall(r'example\("(\w+)"\)', Path(__file__).read_text())
    assert len(SHOWN) > 7
    assert SHOWN.keys() <= {*ran, *EXAMPLES}


SUM = "sum of 5 vectors; its first element is 3.000"
LAST = "survivors (0, 1, 2, 3, 4), first element of their sum 10.000"
EXAMPLES = {
    "private_sum": r"9 survivors; sum \[.*",
    "suspended_clients": f"older state of client 1: latest\n{re.escape(LAST)}",
    "resumable_server": f"the server died; client 1 got no .*\n{re.escape(LAST)}",
    "one_shot_sum": SUM,
    "encrypted_sum": SUM,
    "hospital_statistics": r"Study 'relapses'(?s:.*)log-rank test\n.*\n  28\.7576   1  8\.2\S*",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_its_sum(name: str) -> None:
    assert re.fullmatch(EXAMPLES[name], example(name).rstrip())


def test_over_sockets_with_a_client_killed_before_its_input() -> None:
    printed = example("over_sockets").splitlines()[-1]
    survivors = (0, 1, 2, 4, 5, 6, 7)
    assert printed == f"survivors {survivors}, first element of their sum 25.000"


@pytest.mark.large
def test_async_training_has_the_sums_of_the_page() -> None:
    page = (ROOT / "docs/how-to/async-training.md").read_text()
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert example("async_training") == shown


@pytest.mark.large
@pure_repeats
def test_own_model_is_as_good_as_the_pooled_one_though_a_client_dies_and_one_is_late() -> None:
    pooled = """
import sys
sys.path.insert(0, "examples")
import numpy as np
from own_model import _examples_of
from sklearn.linear_model import LogisticRegression

signed = np.vstack([*map(_examples_of, range(20))])
both, labels = np.vstack([signed, -signed]), np.repeat([1, 0], len(signed))
print(LogisticRegression(fit_intercept=False).fit(both, labels).score(both, labels))
"""
    printed = example("own_model").splitlines()
    survivors = [int(re.search(r"(\d+) survivors", line)[1]) for line in printed]
    assert survivors[:5] == [20, 20, 19, 19, 18]
    late = survivors[5:].count(18)  # client 4 is back when it has slept
    assert survivors[5:] == [18] * late + [19] * (15 - late)
    assert late < 15
    accuracy = float(printed[-1].rpartition(" ")[2])
    assert abs(accuracy - float(run("-c", pooled))) < 0.02


@pure_repeats
def test_lying_server_gets_no_share_and_an_honest_one_the_sum() -> None:
    *lied_to, honest = example("lying_server").splitlines()
    assert len(lied_to) == 6
    assert all("unmasking, signature: client" in line for line in lied_to)
    assert honest == "honest: survivors (0, 1, 2, 3, 4, 5), sum [15. 15. 15.]"


@pytest.mark.large
@pure_repeats
def test_encrypted_recommender_is_the_same_under_any_trust() -> None:
    """An encrypted recommender learns the same whomever one trusts."""
    printed = example("encrypted_recommender").splitlines()
    assert len(printed) == 1 + 2 * len(WARNINGS)
    assert printed[1::2] == [
        f"{trust}: the same integers in every round: True" for trust in WARNINGS
    ]
    assert printed[2::2] == [f"    warning: {warning}" for warning in WARNINGS.values()]


@pure_repeats
def test_own_ratings_recommend_the_film_they_like_first() -> None:
    """With own ratings and names, each user gets their preferred film first."""
    printed = run("examples/own_ratings.py").splitlines()
    films = ["Alien", "Brazil", "Casablanca", "Dune", "Emma", "Fargo"]
    assert len(printed) == 10
    for number, line in enumerate(printed):
        assert re.findall("[A-Z][a-z]+", line)[1:] == [films[(number + n) % 6] for n in (0, 1)]


@pytest.mark.large
def test_own_ratings_document_runs_as_shown(tmp_path: Path) -> None:
    """The commands and the Python of the page, on the table of the example."""
    page = "docs/how-to/own-ratings.md"
    namespace = {"Path": Path}
    source = (ROOT / "examples/own_ratings.py").read_text().partition("with tempfile")[0]
    exec(compile(source, "own_ratings", "exec"), namespace)  # noqa: S102
    namespace["write_table"](tmp_path / "ratings.csv")
    shell = re.findall(r"```shell\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    for line in shell.splitlines()[1:]:
        command = "import sys; sys.argv[0] = 'fedmf'; from fedmf.cli import main; main()"
        shown = run("-c", command, *line.split()[1:], cwd=tmp_path)
    films = {line.split()[1] for line in shown.splitlines()[1:]}
    assert films >= {"Alien", "Brazil"}  # Ada did not rate them; test ratings may follow
    block = "\n".join(blocks(page))
    assert sorted(
        re.findall("[A-Z][a-z]+", run("-c", block, cwd=tmp_path).splitlines()[0])
    ) == [
        "Alien",
        "Brazil",
    ]


@pytest.mark.large
@pure_repeats
def test_find_a_bug_finds_the_smallest_case() -> None:
    """Find a bug finds the smallest case of one and passes the mended version."""
    printed = example("find_a_bug")
    found, mended = printed.split("MendedChunks: ")
    assert "bytes were delivered that were not sent" in found
    assert "schedule=Schedule(faults={0: 'twice'})" in found
    for simplest in ("n_clients=2,", "length=1,", "max_weight=None,", "'semi-honest'"):
        assert simplest in found
    assert mended == "no bug found\n"


@pytest.mark.large
@pure_repeats
@pytest.mark.parametrize("block", blocks("docs/testing.md"))
def test_docs_tests_run(block: str, tmp_path: Path) -> None:
    (tmp_path / "test_block.py").write_text(block)
    (tmp_path / "conftest.py").write_text(AS_MANY.format(scaled(FULL)))
    out = run("-m", "pytest", "-q", "--rootdir=.", "test_block.py", cwd=tmp_path)
    assert "1 passed" in out


@pytest.mark.large
@pure_repeats
@pytest.mark.parametrize("block", blocks("README.md") + blocks("docs/paillier.md"))
def test_readme_python_runs(block: str) -> None:
    assert run("-c", block)


def test_readme_first_example_prints_its_output() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"```python\n.*?```\n\n((?:    [^\n]*\n)+)", readme, re.DOTALL)
    assert shown is not None
    expected = "".join(line.removeprefix("    ") for line in shown[1].splitlines(True))
    assert run("-c", blocks("README.md")[0]) == expected
