"""The filter of a site: what leaves it, whatever the trainer returns and the server asks."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.executor import Executor
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import UnsafeJobError
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.private.privacy_manager import Scope

from flare_network import Adding, Network, Site, leaves
from secagg import ClippingWarning, Noise, PrecisionWarning, Registry
from secagg.encoding import FixedPoint
from secagg.encoding.clipping import LOSSES
from secagg.flare import SecAggFedAvg, SecAggFilter, SitePolicy
from secagg.flare.guard import note, noted
from secagg.flare.model import Model, write_model
from secagg.oneshot import Accumulator, Helper, HelperJournal, OneShotParams, report
from secagg.session import bind
from secagg.session.wire import REPORT, Answer, Task, encode, read_answer, task_id
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

LENGTH = 5
TEXT = "patient 4711 has no diagnosis"
NUMBER = 1234.567
PUBLIC = {"__run_num__", "__identity_name__"}
REJECTED = ReturnCode.TASK_DATA_FILTER_ERROR
MESSAGE = write_model(Model("train", 0, 1, {"w": np.zeros(LENGTH)}))


@pytest.fixture(scope="module")
def request_for():
    with temporary_journals(2, "x25519") as made:
        yield Request(made)


class Request:
    """Requests of a server for a report, and a site that performs them."""

    def __init__(self, journals: list[HelperJournal]) -> None:
        self.journals = journals
        self.trusted = [journal.public[1].hex() for journal in journals]

    def params(self, message: bytes = MESSAGE, **more: Any) -> OneShotParams:
        settings = {
            "n_clients": 3,
            "length": LENGTH,
            "encoding": FixedPoint(clip=2.0**13, rounding="nearest"),
            "helpers": tuple(journal.public for journal in self.journals),
            "threshold": 2,
            "min_clients": 3,
            "security": "semi-honest",
            "suite": "x25519",
            "session": bind(b"sum", message),
        }
        return OneShotParams(**settings | more)

    def __call__(
        self,
        message: bytes | None = None,
        *,
        step: str = REPORT,
        task: str = "train",
        endorsed: bytes | None = None,
        **more: Any,
    ) -> Shareable:
        if message is None:
            message = write_model(Model(task, 0, 1, {"w": np.zeros(LENGTH)}))
        params = self.params(message, **more)
        registry = Registry({0: make_identity(0).public}) if params.active else None
        judged = params if endorsed is None else self.params(endorsed)
        helpers = [Helper(judged, one, registry=registry) for one in self.journals]
        data = b"".join(helper.endorse() for helper in helpers)
        name = task_id(params.digest, 0, 0, step)
        frame = encode(Task(name, 0, 0, step, params.to_bytes(), message, data))
        return Shareable({"task": frame})

    def site(self, executor: Executor, **more: Any) -> Site:
        """Return a site that filters in its job."""
        settings = {"data_filters": [SecAggFilter()], "result_filters": [SecAggFilter()]}
        policy = SitePolicy(helpers=self.trusted)
        return Site("site-1", executor, policy, executor=executor, **settings | more)

    def vector_in(self, reply: Shareable, params: OneShotParams, weight: Any = None) -> Any:
        """Return the sum of a report and two of zeros, which the helpers open."""
        accumulator = Accumulator(params)
        accumulator.add(read_answer(reply["answer"], 1 << 20, 0, "report").data)
        for u in (1, 2):
            accumulator.add(report(np.zeros(LENGTH), params, u, weight))
        helpers = [Helper(params, journal) for journal in self.journals]
        for helper in helpers:
            for boxes in accumulator.boxes(helper.number):
                assert not helper.check(boxes)
        request = accumulator.request()
        return accumulator.result([helper.open(request) for helper in helpers]).sum


class Returning(Executor):
    """Executor that returns, or raises, what it has."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result, self.ran = result, 0

    def execute(self, name: str, shareable: Shareable, fl_ctx: Any, signal: Any) -> Shareable:
        self.ran += 1
        self.got, self.context = shareable, fl_ctx
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class AddOne(Filter):
    """Filter of site or job that changes the trainer's arrays, as noise does."""

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        if "DXO" in shareable:
            for array in shareable["DXO"]["data"].values():
                array += 1.0  # noqa: PLW2901, in place
        return shareable


def scope_of(*results: Filter) -> Scope:
    """Return the scope that ``local/privacy.json`` of a site makes."""
    scope = Scope()
    scope.add_task_data_filter(SecAggFilter(), FilterKey.IN)
    for one in results or (SecAggFilter(),):
        scope.add_task_result_filter(one, FilterKey.OUT)
    return scope


def site_wide(*results: Filter) -> dict[str, Any]:
    """Return options of a site that filters all jobs."""
    return {"data_filters": [], "result_filters": [], "scope": scope_of(*results)}


def performed(
    site: Site, data: Shareable, name: str = "train", job: str = "job 1"
) -> tuple[str, Shareable, Network]:
    """Let a site perform a task; return code, reply, and what left the site."""
    network = Network([site], job=job)
    reply = network.perform(site, name, data)
    return reply.get_return_code(), reply, network


def trained(value: float = 1.0) -> Shareable:
    return FLModelUtils.to_shareable(FLModel(params={"w": np.full(LENGTH, value)}))


def test_result_leaves_as_a_report(request_for):
    executor = Returning(trained())
    more = {"session": bind(b"opened", MESSAGE)}
    code, reply, network = performed(request_for.site(executor), request_for(**more))
    assert code == ReturnCode.OK
    np.testing.assert_array_equal(request_for.vector_in(reply, request_for.params(**more)), 1.0)
    model = FLModelUtils.from_shareable(executor.got)
    assert model.current_round == 0
    np.testing.assert_array_equal(model.params["w"], np.zeros(LENGTH))
    (_, properties), _ = network.sent
    assert properties.keys() == PUBLIC


TEXTS = st.sampled_from([TEXT, f"{NUMBER}", "accuracy"])
LEAVES = st.one_of(
    TEXTS,
    st.just(NUMBER),
    st.just(np.full(LENGTH, NUMBER)),
    st.just(np.full(LENGTH, NUMBER).tobytes()),
    st.just({TEXT: NUMBER}),
)
MODELS = st.builds(
    FLModel,
    params=st.dictionaries(
        st.sampled_from(["w", "v"]),
        st.sampled_from([LENGTH, LENGTH + 1]).map(lambda n: np.full(n, NUMBER)),
        min_size=1,
    ),
    metrics=st.dictionaries(TEXTS, st.just(NUMBER)),
    meta=st.dictionaries(TEXTS, LEAVES),
).map(FLModelUtils.to_shareable)
DATA = st.sampled_from([DataKind.WEIGHTS, DataKind.METRICS, DataKind.COLLECTION]).map(
    lambda kind: DXO(kind, data={"w": np.full(LENGTH, NUMBER)}).to_shareable()
)
CODES = st.sampled_from([ReturnCode.OK, ReturnCode.EXECUTION_EXCEPTION, TEXT])
KINDS = (ValueError, RuntimeError, KeyError, OSError)
ERRORS = st.sampled_from([kind(TEXT) for kind in KINDS])


@st.composite
def results(draw: st.DrawFn) -> Any:
    """Draw what an executor returns or raises."""
    result = draw(st.one_of(MODELS, DATA, CODES.map(make_reply), ERRORS, st.none(), TEXTS))
    if isinstance(result, Shareable):
        fields = st.sampled_from(["answer", "key", "signature", "task", "DXO", TEXT])
        result.update(draw(st.dictionaries(fields, LEAVES, max_size=2)))
        for name, value in draw(st.dictionaries(TEXTS, LEAVES, max_size=2)).items():
            result.set_header(name, value)
        if draw(st.booleans()):
            result.set_return_code(draw(CODES))
    return result


@given(results(), st.sampled_from(["train", "secagg", "validate"]), st.booleans())
def test_no_array_number_or_text_leaves(request_for, result, name, asked):
    with tempfile.TemporaryDirectory() as root:
        site = request_for.site(Returning(result), root=Path(root), **site_wide())
        data = request_for(task=name) if asked else Shareable()
        code, reply, network = performed(site, data, name)
        check_leaves(network)
    # whatever the executor returned
    assert ("answer" in reply) is (code == ReturnCode.OK) is asked


def check_leaves(network: Network) -> None:
    number = np.float64(NUMBER)
    for _, message in network.sent:
        for value in leaves(message):
            assert value is None or isinstance(value, str | bytes | bool | int)
            assert TEXT not in str(value)
            assert str(NUMBER) not in str(value)
            if isinstance(value, bytes):
                assert number.tobytes() not in value
                assert number.astype(np.float32).tobytes() not in value


@pytest.mark.parametrize("name", ["train", "validate"])
def test_task_that_is_no_request_is_not_performed(request_for, name):
    executor = Returning(trained())
    for data in (
        Shareable(),
        trained(),
        Shareable({"task": "text"}),
        Shareable({"task": b"x"}),
    ):
        site = request_for.site(executor, **site_wide())
        assert performed(site, data, name)[0] == REJECTED
    assert executor.ran == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"step": "masked_input"},
        {"task": "validate"},
        {"session": bind(b"sum", b"another message")},
        {"session": b"sum"},
        {"message": b"no model"},
        {"threshold": 1},
        {"security": "active"},
        {"endorsed": b"another message"},
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_request_that_fails_a_check_is_not_performed(request_for, wrong):
    executor = Returning(trained())
    assert performed(request_for.site(executor), request_for(**wrong))[0] == REJECTED
    assert executor.ran == 0


def test_budget_is_spent_before_the_training_and_outlives_jobs(request_for):
    pytest.importorskip("dp_accounting")
    policy = SitePolicy(helpers=request_for.trusted, epsilon=8.0, delta=1e-5)
    executor = Returning(trained())
    site = request_for.site(executor)
    site.policy = policy
    assert performed(site, request_for())[0] == REJECTED  # without noise
    assert executor.ran == 0
    noise = Noise(int(0.8 * 2**29 * math.sqrt(LENGTH)))  # room for one sum
    for job, ran in (("job 1", 1), ("job 2", 1)):
        data = request_for(noise=noise, modulus_bits=48, session=bind(job.encode(), MESSAGE))
        code = performed(site, data, job=job)[0]
        assert (code, executor.ran) == (ReturnCode.OK if job == "job 1" else REJECTED, ran)


@pytest.mark.parametrize("missing", ["data", "result"])
def test_half_of_the_filter_lets_no_weights_leave(request_for, missing):
    executor = Returning(trained())
    site = request_for.site(executor, **{f"{missing}_filters": []})
    code, _, network = performed(site, request_for())
    assert code != ReturnCode.OK
    assert executor.ran == (missing == "data")
    check_leaves(network)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_filters_of_the_site_change_the_update(request_for, first):
    """They come before those of the job, so noise of the site stands before its own filter."""
    more = {"session": bind(b"noise %d" % first, MESSAGE)}
    order = (AddOne(), SecAggFilter()) if first else (SecAggFilter(), AddOne())
    site = request_for.site(Returning(trained()), **site_wide(*order))
    _, reply, _ = performed(site, request_for(**more))
    found = request_for.vector_in(reply, request_for.params(**more))
    np.testing.assert_array_equal(found, 2.0 if first else 1.0)


class Replacing(Filter):
    """Filter of a job that makes a result of its own."""

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        return trained()


def test_site_and_job_may_both_have_the_filter_with_nothing_between(request_for):
    code, reply, _ = performed(
        request_for.site(Returning(trained()), scope=scope_of()), request_for()
    )
    assert code == ReturnCode.OK
    assert set(reply) == {"answer", "__headers__"}
    filters = {"scope": scope_of(), "result_filters": [Replacing(), SecAggFilter()]}
    site = request_for.site(Returning(trained()), **filters)
    code, _, network = performed(site, request_for(), job="job 2")
    assert code == ReturnCode.TASK_RESULT_FILTER_ERROR
    check_leaves(network)


def test_report_of_one_task_is_no_result_of_the_next():
    context = FLContext()
    for task in ("first", "second"):
        context.set_prop(FLContextKey.TASK_ID, task)
        assert noted(context) is None
        reply = note(context, Shareable())
        assert noted(context) is reply


WEIGHTED = {"max_weight": 10, "modulus_bits": 40}


def weighted(**meta: object) -> Shareable:
    return FLModelUtils.to_shareable(FLModel(params={"w": np.ones(LENGTH)}, meta=meta))


def failed(code: str = ReturnCode.EXECUTION_EXCEPTION) -> Shareable:
    result = weighted(NUM_STEPS_CURRENT_ROUND=3)
    result.set_return_code(code)
    return result


ANY = {
    "fits": (weighted(NUM_STEPS_CURRENT_ROUND=3), 3),
    "above": (weighted(NUM_STEPS_CURRENT_ROUND=4711), 10),
    "missing": (weighted(), 0),
    "bool": (weighted(NUM_STEPS_CURRENT_ROUND=True), 0),
    "negative": (weighted(NUM_STEPS_CURRENT_ROUND=-1), 0),
    "fraction": (weighted(NUM_STEPS_CURRENT_ROUND=NUMBER), 0),
    "names": (FLModelUtils.to_shareable(FLModel(params={"v": np.ones(LENGTH)})), 0),
    "nan": (trained(math.nan), 0),
    "aborted": (make_reply(ReturnCode.TASK_ABORTED), 0),
    "empty": (Shareable(), 0),
    "failed": (failed(), 0),
    "none": (None, 0),
    "ValueError": (ValueError(TEXT), 0),
    "unsafe": (UnsafeJobError(TEXT), 0),
}


@pytest.mark.parametrize("name", ANY)
def test_any_result_leaves_as_a_report_of_one_size(request_for, name):
    """Refusals would tell the server numbers of a site, since it chooses the bounds."""
    result, sum_ = ANY[name]
    settings = WEIGHTED | {"session": bind(os.urandom(8), MESSAGE)}
    params, request = request_for.params(**settings), request_for(**settings)
    site = request_for.site(Returning(result))
    request.add_cookie("workflow", "of the server")
    code, reply, network = performed(site, request)
    check_leaves(network)
    assert code == ReturnCode.OK
    assert reply.get_cookie("workflow") == "of the server"
    zeros = report(np.zeros(LENGTH), params, 9, 0)
    assert len(reply["answer"]) == len(encode(Answer(bytes(16), zeros)))
    np.testing.assert_array_equal(request_for.vector_in(reply, params, 0), sum_)
    # a failed training, too, uses up the round
    assert performed(site, request)[0] == REJECTED
    assert site.executor.ran == 1


STATED, LOW = {"clip": 2.0**13, "max_weight": 10}, {"threshold": 1}
JOBS: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {
    "weight": [({}, {}, True), ({}, {"max_weight": 11}, False), ({}, {}, True)],
    "no weight": [({}, {}, True), ({}, {"max_weight": None}, False)],
    "clip": [({}, {}, True), ({}, {"encoding": FixedPoint(clip=1.0)}, False)],
    "stated": [(STATED, {"max_weight": 11}, False), (STATED, {}, True)],
    "stated by a job": [
        (STATED, {}, True),
        (STATED | {"max_weight": 11}, {"max_weight": 11}, False),
        (STATED, {}, True),
    ],
    "threshold": [
        ({}, {"threshold": 1}, False),
        ({"min_threshold": 1}, {"threshold": 1}, True),
    ],
}
"""Policy of the site, parameters of the sum, and whether the site reports, job by job."""


@pytest.mark.parametrize("jobs", JOBS.values(), ids=list(JOBS))
def test_first_sum_and_the_policy_fix_the_bounds_of_all_jobs(request_for, jobs):
    executor = Returning(weighted(NUM_STEPS_CURRENT_ROUND=3))
    site = request_for.site(executor)
    for number, (policy, sums, reports) in enumerate(jobs):
        site.policy = SitePolicy(helpers=request_for.trusted, **policy)
        request = request_for(**WEIGHTED | sums)
        code, _, _ = performed(site, request, job=f"job {number}")
        assert code == (ReturnCode.OK if reports else REJECTED)
    assert executor.ran == sum(reports for _, _, reports in jobs)


@pytest.mark.parametrize(
    ("value", "warning"), [(2.0**14, ClippingWarning), (-1e-9, PrecisionWarning)]
)
def test_site_hears_of_losses_and_reports_all_the_same(request_for, value, warning, caplog):
    site = request_for.site(Returning(trained(value)))
    with warnings.catch_warnings(category=warning, action="error"):
        assert performed(site, request_for())[0] == ReturnCode.OK
    assert f"the report ended with {warning.__name__}" in caplog.text
    with pytest.warns(warning) as caught:
        assert performed(site, request_for(), job="job 2")[0] == ReturnCode.OK
    assert [one.category for one in caught] == [warning]
    assert str(value) not in str(caught[0].message)


@pytest.mark.parametrize("value", [0.0, 2.0**-17, -(2.0**13)])
def test_site_hears_nothing_of_other_updates(value, request_for, caplog):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        code, _, _ = performed(request_for.site(Returning(trained(value))), request_for())
    assert code == ReturnCode.OK
    assert not [one for one in caught if issubclass(one.category, LOSSES)]
    assert "Warning" not in caplog.text


def run(sites: list[Site], **more: Any) -> tuple[dict[str, np.ndarray], Network]:
    """Run a job of four exchanges."""
    settings = {"num_clients": 3, "num_rounds": 1, "model": {"w": np.zeros(3)}, "clip": 4.0}
    network = Network(sites)
    model = network.run(SecAggFedAvg(**settings | more))
    assert network.codes["take_part"] == [ReturnCode.OK] * 3
    return model, network


def test_site_of_four_exchanges_hears_of_an_update_below_half_a_step():
    with pytest.warns(PrecisionWarning) as caught:
        run([Site(f"site-{i}", Adding(-1e-9), SitePolicy()) for i in (1, 2, 3)])
    assert [one.category for one in caught] == [PrecisionWarning] * 3


def test_executor_of_four_exchanges_passes_the_filter_of_its_site():
    sites = [Site(f"site-{i}", Adding(i / 8), SitePolicy()) for i in (1, 2, 3)]
    for site in sites:
        site.scope = scope_of(AddOne(), SecAggFilter())
        site.scope.add_task_data_filter(AddOne(), FilterKey.IN)
    # the model that sites train and their update both have the noise
    np.testing.assert_allclose(run(sites)[0]["w"], 2.25, atol=2**-14)


def test_site_trains_for_its_own_configuration_only(tmp_path, request_for, caplog):
    executor = Returning(trained())
    site = request_for.site(executor, app=tmp_path / "app")
    (site.app / "config").mkdir(parents=True)
    (site.app / "config/config_fed_client.json").write_text("{}")
    _, answer, _ = performed(site, Shareable({"step": "configure"}))
    assert executor.ran == 0
    own = answer["configuration"]
    for agreed, code in ((b"", REJECTED), (bytes(32), REJECTED), (own, ReturnCode.OK)):
        model = Model("train", 0, 1, {"w": np.zeros(LENGTH)}, (), agreed)
        assert performed(site, request_for(write_model(model)))[0] == code
    assert executor.ran == 1
    assert "check configuration" in caplog.text


LIE = "of the server, for this site"


def test_trainer_sees_nothing_outside_the_agreed_message(request_for):
    """A server that lies puts a text wherever it can."""
    executor = Returning(trained())
    request = request_for()
    request[LIE] = LIE
    for name in ("lr", "START_ROUND", "validate_type", "__task_id__", "submit_model_name"):
        request.set_header(name, LIE)
    request.add_cookie("lr", LIE)
    seen = FLContext()
    seen.set_public_props({"lr": LIE, "__run_num__": "job 1", "__identity_name__": LIE})

    def context(name: str, fl_ctx: FLContext) -> None:
        fl_ctx.set_peer_context(seen)
        fl_ctx.set_prop("lr", LIE, private=False, sticky=False)
        for sticky in (FLContextKey.JOB_META, FLContextKey.CLIENT_HIERARCHY):
            fl_ctx.set_prop(sticky, {"lr": LIE})

    site = request_for.site(executor)
    network = Network([site])
    network.context = context
    reply = network.perform(site, "train", request)
    assert reply.get_return_code() == ReturnCode.OK
    assert reply.get_cookie("lr") == LIE
    executor.got.set_cookie_jar(None)  # which FLARE gets back after the training
    model, fl_ctx = executor.got, executor.context
    assert LIE not in str(list(leaves(model)))
    assert fl_ctx.get_peer_context().get_all_public_props() == {"__run_num__": "job 1"}
    own = {"__engine__", "__runner__", "__manager__", "__peer_ctx__"}
    found = {key: fl_ctx.get_prop(key) for key in fl_ctx.get_prop_keys() if key not in own}
    assert LIE not in str(found)
    assert (found["__task_name__"], found["__task_id__"]) == ("train", "train 0")
    assert found["__task_data__"]["DXO"] == model["DXO"]
    assert (fl_ctx.get_identity_name(), fl_ctx.get_job_id()) == ("site-1", "job 1")


def test_log_of_the_filter_has_no_text_of_an_error(request_for, monkeypatch, caplog):
    """FLARE can send a site's log to the server."""

    def fail(*args: object) -> None:
        raise ValueError(TEXT)

    monkeypatch.setattr("secagg.flare.model.read_update", fail)
    performed(request_for.site(Returning(trained())), request_for())
    assert "ValueError" in caplog.text
    assert TEXT not in caplog.text


@pytest.mark.parametrize("fields", [{}, {"key": bytes(32)}, {"signature": bytes(99)}], ids=str)
def test_result_that_looks_like_the_executors_is_blocked(fields):
    made = make_reply(ReturnCode.OK)
    made.update(fields)
    site = Site("site-1", Adding(0), executor=Returning(made), scope=scope_of())
    code, reply, _ = performed(site, Shareable(), "secagg")
    assert code == REJECTED
    assert not fields.keys() & reply.keys()
    assert site.executor.ran == 0  # a trainer of all tasks sees this one neither
