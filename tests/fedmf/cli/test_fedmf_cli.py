import itertools
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import fedmf.aggregate
import secagg
from fedmf.aggregate import WARNINGS, PlainSum
from fedmf.cli import choices, own, report
from fedmf.cli.manners import stderr
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf_command import call
from paillier_keys import keypair
from secagg.paillier.gmp import Missing
from threshold_keys import dealing

RUN = (sys.executable, "-c", "from fedmf.cli import main; main()")
QUICK = ("--aggregation", "plain", "--rounds", "1")
PAILLIER = ("--aggregation", "paillier")


def named(arguments):
    """Return the arguments with the model fedmf, unless they name another."""
    return arguments if "--model" in arguments else ("--model", "fedmf", *arguments)


def invoke(*arguments, code=0):
    return call("train", *named(arguments), code=code)


@pytest.fixture
def small_key(monkeypatch):
    """Let keys of any length be small ones; the lengths that were asked for."""
    asked = []

    def make(bits):
        asked.append(bits)
        return keypair()

    def deal(trustees, threshold, *, bits):
        asked.append(bits)
        return dealing(trustees, threshold)

    monkeypatch.setattr("fedmf.aggregate.paillier.generate_keypair", make)
    monkeypatch.setattr("fedmf.aggregate.paillier.deal", deal)
    return asked


@pytest.fixture
def ticking(monkeypatch):
    """Let whatever a role does once take it a second."""
    ticks = itertools.count()
    monkeypatch.setattr("fedmf.aggregate.aggregation.perf_counter", lambda: float(next(ticks)))


def result_of(document):
    return json.loads(document)["result"]


def test_secure_and_plain_training_print_the_same_errors():
    """The real protocols from end to end, by 30 of the 300 simulated users in each round."""
    common = ("--rounds", "2", "--cohort", "30", "--dropout", "0.1", "--json", "--seed", "3")
    one_shot = ("--aggregation", "one-shot", "--helpers", "4", "--threshold", "3")
    shown = [invoke(*common, *way) for way in ((), one_shot, ("--aggregation", "plain"))]
    runs = [json.loads(one.stdout) for one in shown]
    how = [run["settings"]["aggregation"] for run in runs]
    assert [one["name"] for one in how] == ["SecAggSum", "OneShotSum", "PlainSum"]
    assert (how[1]["helpers"], how[1]["threshold"]) == (4, 3)
    for name in ("rmse", "mae", "train_rmse", "trained_items", "survivors_per_round"):
        assert len({run["result"][name] for run in runs}) == 1
    digests = [[r["digest"] for r in run["history"]["rounds"]] for run in runs]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests[0])) == 2
    assert runs[1]["result"]["key_holder_seconds"] > 0
    assert "round   2" in shown[0].stderr
    table = invoke(*common[:4], "--aggregation", "one-shot").stdout
    assert re.search(r"server [\d.]+ s, helpers [\d.]+ s, a user", table)


@pytest.mark.check(33)
def test_check33_encrypted_training_shows_its_warning(tmp_path, small_key, ticking):
    """Once on the screen, and in history.json, beside the errors of the plain training."""
    common = ("--rounds", "2", "--cohort", "8", "--dropout", "0.1", "-k", "3", "--seed", "3")
    plain = invoke(*common, "--aggregation", "plain", "--json")
    names = ("shared client key", "key-holder", "threshold")  # as in Python, or for a shell
    for name, (trust, warning) in zip(names, WARNINGS.items(), strict=True):
        out = tmp_path / trust
        named = ("--aggregation", "paillier", "--trust", name)
        if trust == "threshold":
            named += ("--trustees", "3", "--threshold", "2")
        ran = invoke(*common, *named, "--no-ranking", "--out", str(out))
        assert (ran.stdout + ran.stderr).count(warning) == 1
        assert re.search(f"aggregation +Paillier, trust: {trust}", ran.stdout)
        run = json.loads((out / "history.json").read_text())
        how = run["settings"]["aggregation"]
        assert (how["name"], how["trust"], how["warning"]) == ("PaillierSum", trust, warning)
        dealt = (3, 2) if trust == "threshold" else (None, None)
        assert (how["trustees"], how["threshold"]) == dealt
        assert how["bits"] == 3072
        assert result_of(plain.stdout)["rmse"] == run["result"]["rmse"]
        rounds = [json.loads(plain.stdout)["history"]["rounds"], run["history"]["rounds"]]
        one, other = ([r["digest"] for r in records] for records in rounds)
        assert one == other
        holder = {"key holder": "key holder", "threshold": "trustees"}.get(trust)
        turns = {"key holder": 1, "threshold": 2}.get(trust, 0)  # of one key, or 2 of 3 shares
        rounds = [(holder, f"{2 * turns:.2f}")] * 2  # each counts, and sums
        total = [(holder, f"{4 * turns:.1f}")]
        for shown, times in ((ran.stderr, rounds), (ran.stdout, total)):
            named = re.findall(r" s, (key holder|trustees) ([\d.]+) s", shown)
            assert named == (times if holder else [])
        assert run["result"]["key_holder_seconds"] == 4 * turns
        made = "dealing a key of 3072 bits to 3 trustees"
        line = made if trust == "threshold" else "making a key of 3072 bits"
        assert ran.stderr.count(f"{line}\n") == 1
        assert ran.stderr.index(line) < ran.stderr.index("round   1")


def test_train_prints_a_table_and_writes_files(tmp_path):
    out = tmp_path / "runs" / "one"
    ran = invoke("--aggregation", "plain", "--rounds", "2", "-k", "5", "--out", str(out))
    assert sorted(path.name for path in out.iterdir()) == [
        "curve.svg", "history.json", "model.fedmf", "ranking.fedmf",
    ]  # fmt: skip
    assert Factors.load(out / "model.fedmf").k == 5
    result = result_of((out / "history.json").read_text())
    assert re.search(rf"test RMSE +{result['rmse']:.4f}", ran.stdout)
    assert re.search(r"users in a sum +300\.0 of 300", ran.stdout)
    assert "saved in" in ran.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_results_are_printed_if_saving_fails(tmp_path, monkeypatch, form):
    def full(*_):
        raise ModelError("the model cannot be written: No space left on device")

    monkeypatch.setattr(Factors, "save", full)
    ran = invoke(*QUICK, "--out", str(tmp_path), *form, code=2)
    assert ('"rmse"' if form else "test RMSE") in ran.stdout
    assert ran.stderr.endswith(
        "\nfedmf: the model cannot be written: No space left on device\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_options_reach_the_training():
    ran = invoke(
        *("--aggregation", "plain", "-k", "7", "--rounds", "1", "--json"),
        *("--rate", "0.002", "--min-raters", "4", "--split", "last", "--seed", "9"),
    )
    settings = json.loads(ran.stdout)["settings"]
    hyper = settings["hyper_parameters"]
    assert (hyper["k"], hyper["update"], hyper["rate"]) == (7, "ridge", 0.002)
    assert hyper["min_raters"] == 4
    assert (settings["split"], settings["seed"], settings["rounds"]) == ("last", 9, 1)


TRUSTEES = ("--trust", "threshold", "--trustees")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--dropout", "1"), "dropout = 1.0"),
        (("--cohort", "half"), "--cohort half"),
        (("--neighbours", "7"), "neighbours is 7"),
        (("--suite", "mlkem"), "--suite = 'mlkem' must be"),
        (("--aggregation", "plain", "--suite", "hybrid"), "--suite cannot be combined"),
        (
            ("--aggregation", "plain", "--threshold", "5", "--bits", "2048"),
            "--threshold, --bits cannot be combined with --aggregation plain",
        ),
        (("--aggregation", "one-shot", "--threshold", "4"), "--threshold 4"),
        (PAILLIER, "--trust, one of shared-client-key"),
        ((*PAILLIER, "--trust", "no one"), "--trust no one"),
        ((*PAILLIER, "--trust", "key holder", "--bits", "1024"), "1024 must be from 2048"),
        ((*PAILLIER, *TRUSTEES[:2]), "--trust threshold needs"),
        ((*PAILLIER, *TRUSTEES, "3"), "--trustees 3"),
        ((*PAILLIER, *TRUSTEES, "3", "--threshold", "4"), "--threshold 4"),
        ((*PAILLIER, *TRUSTEES, "101", "--threshold", "2"), "--trustees 101"),
        ((*PAILLIER, "--trust", "key holder", "--threshold", "3"), "--threshold 3 need"),
        (("--split", "u1"), "simulated"),
        (("--out", "/proc"), "--out /proc"),
    ],
)
def test_bad_arguments_exit_with_one_line(arguments, named):
    ran = invoke(*arguments, code=2)
    assert ran.stdout == ""
    assert named in ran.stderr
    assert "None" not in ran.stderr
    assert ran.stderr.startswith("fedmf: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ((), "lower --threshold or --dropout"),
        (("--model", "fedlr"), "lower --threshold or --dropout"),  # without a mean
        ((*PAILLIER, "--trust", "key holder"), "raise --cohort"),
    ],
)
def test_training_without_a_sum_exits_with_remedy(small_key, options, remedy):
    ran = invoke("--rounds", "1", "--cohort", "4", "--dropout", "0.99", *options, code=2)
    assert "every round was aborted" in ran.stderr
    assert remedy in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "neighbours"), [((), "auto"), (("--neighbours", "0"), None)]
)
def test_neighbours_default_to_the_rule_and_0_means_all(arguments, neighbours):
    ran = invoke("--rounds", "1", "--cohort", "5", "--json", *arguments)
    settings = json.loads(ran.stdout)["settings"]
    assert settings["aggregation"]["neighbours"] == neighbours


def test_suite_of_the_sums_is_in_the_document():
    ran = invoke("--rounds", "1", "--cohort", "5", "--json", "--suite", "hybrid")
    assert json.loads(ran.stdout)["settings"]["aggregation"]["suite"] == "hybrid"


def run_without(module, *arguments):
    """Run the command where `module` is not installed."""
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
{RUN[2]}"""
    command = [sys.executable, "-c", code, "train", *named(arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603


@pytest.mark.parametrize("model", ["fedmf", "fedlr"])
def test_matplotlib_missing_prints_a_hint_for_errors(model, tmp_path):
    """A hint replaces the curve if matplotlib is missing, and the model has errors to draw."""
    options = ("--model", model, "--aggregation", "plain", "--rounds", "1")
    ran = run_without("matplotlib", *options, "--no-ranking", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert ("no curve.svg: pip install matplotlib" in ran.stderr) == (model == "fedmf")
    assert (tmp_path / "model.fedmf").exists() == (model == "fedmf")
    assert not (tmp_path / "curve.svg").exists()


@pytest.mark.parametrize("trust", [("key holder",), (*TRUSTEES[1:], "3", "--threshold", "2")])
@pytest.mark.parametrize("data", ["simulated", "none.csv"])
def test_gmpy2_missing_is_named_before_data_and_key(trust, data, small_key, monkeypatch):
    """Also where the data are missing, too."""
    monkeypatch.setattr(choices, "gmpy2", Missing())
    monkeypatch.setattr(own, "load", lambda name: pytest.fail(f"{name} is read"))
    ran = invoke(*PAILLIER, "--trust", *trust, "--data", data, code=2)
    assert ran.stdout == ""
    assert "needs gmpy2" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not small_key


@pytest.mark.parametrize("module", ["typer", pytest.param("rich", marks=pytest.mark.large)])
def test_typer_missing_prints_the_install_command(module):
    ran = run_without(module)
    assert ran.returncode == 2
    assert ran.stderr == f'fedmf: the command line needs {module}: pip install "secagg[cli]"\n'


@pytest.mark.parametrize(
    ("package", "module"),
    [("secagg.cli", "numpy"), ("fedmf.cli", "typer"), ("benches.papers.__main__", "numpy")],
)
def test_ctrl_c_during_import_exits_quietly(package, module):
    """The import of a library is interrupted."""
    code = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def struck(name, *rest):\n"
        f"    if name == {module!r}: raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = struck\n"
        f"from {package} import main\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_version_is_that_of_the_package():
    assert call("--version").stdout.endswith(f" {secagg.__version__}\n")


@pytest.mark.large
def test_ctrl_c_keeps_the_finished_rounds():
    """A real process and a real signal; it trains 100,000 rounds unless it obeys."""
    words = ("train", "--model", "fedmf", "--aggregation", "plain", "--rounds", "100000")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([*RUN, *words, "--json"], **pipes) as process:  # noqa: S603
        next(line for line in process.stderr if "round   1" in line)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    run = json.loads(stdout)
    assert run["history"]["interrupted"]
    assert f"interrupted: the {run['result']['rounds']} rounds done are not saved" in stderr


@pytest.mark.parametrize(
    ("place", "said"),
    [(PlainSum, "no round was finished"), (own, "before the training began")],
)
def test_ctrl_c_before_the_first_model_keeps_nothing(place, said, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, "load" if place is own else "_add", interrupted)
    ran = invoke("--aggregation", "plain", "--out", str(tmp_path), code=130)
    assert said in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_sigterm_keeps_the_finished_rounds_of_every_training(tmp_path, monkeypatch):
    """The second round is lost, and the handler is as before at the end."""

    def terminated(self, record):
        if record.round == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(report.LiveReport, "round_done", terminated)
    before = signal.getsignal(signal.SIGTERM)
    ran = invoke("--aggregation", "plain", "--rounds", "5", "--out", str(tmp_path), code=130)
    run = json.loads((tmp_path / "history.json").read_text())
    assert run["history"]["interrupted"]
    assert run["result"]["rounds"] == 2
    assert Factors.load(tmp_path / "model.fedmf").n_users == 300
    assert "interrupted: the 2 rounds done are kept" in ran.stderr
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_during_saving_writes_complete_files(tmp_path, monkeypatch, sent):
    def impatient(*arguments):
        os.kill(os.getpid(), sent)
        report.save(*arguments)

    monkeypatch.setattr(fedmf.cli.train, "save", impatient)
    before = signal.getsignal(sent)
    invoke("--aggregation", "plain", "--rounds", "1", "--out", str(tmp_path))
    written = {"curve.svg", "history.json", "model.fedmf", "ranking.fedmf"}
    assert {path.name for path in tmp_path.iterdir()} == written
    assert signal.getsignal(sent) is before


def test_long_training_prints_some_of_the_rounds(monkeypatch):
    monkeypatch.setattr(report, "LINES", 4)
    ran = invoke("--aggregation", "plain", "--rounds", "21", "--json")
    shown = re.findall(r"round +(\d+)", ran.stderr)
    assert shown == ["1", "5", "10", "15", "20", "21"]


@pytest.mark.parametrize(
    ("seconds", "rounds", "meant"),
    [
        (9, 3, ["about 27 s for all 3 rounds"]),
        (3, 3, []),
        (60, 1, []),
        (40, 3, ["about 2 min for all 3 rounds"]),
        (90, 20, ["about 30 min for all 20 rounds"]),
    ],
)
def test_first_round_estimates_the_time_of_all(seconds, rounds, meant, monkeypatch, capsys):
    ticks = itertools.count()  # of the clock, one for each round
    monkeypatch.setattr(report, "perf_counter", lambda: float(seconds * next(ticks)))
    with report.LiveReport(stderr(), rounds, "") as live:
        for done in range(1, rounds + 1):
            live.advanced("round", done, rounds)
    assert re.findall("about .*", capsys.readouterr().err) == meant


@pytest.mark.parametrize("model", ["fedals", "implicit"])
def test_traffic_names_what_it_leaves_out(model):
    """A user of a plain sum gets the model, and nothing for the sum."""
    ran = invoke("--aggregation", "plain", "--rounds", "2", "--model", model)
    line = re.search(r"traffic for the sum +([\s\S]*)", ran.stdout)[1]
    assert "0.0 kB down per round, the model not included" in re.sub(r"\s+", " ", line)
