"""The filter of a site: what leaves it, whatever the trainer returns and the server asks."""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections.abc import Iterator
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
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.private.privacy_manager import Scope

from flare_network import Adding, Network, Site, leaves
from secagg import PrecisionWarning, Registry
from secagg.encoding import FixedPoint
from secagg.encoding.clipping import LOSSES
from secagg.flare import SecAggFedAvg, SecAggFilter, SitePolicy
from secagg.flare.model import Model, write_model
from secagg.flare.own import is_own, note, noted
from secagg.oneshot import Accumulator, Helper, HelperJournal, OneShotParams, report
from secagg.session import bind
from secagg.session.wire import REPORT, Answer, Task, encode, read_answer, task_id
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

LENGTH = 5
TEXT = "patient 4711 has no diagnosis"
NUMBER = 1234.567
PUBLIC = {"__run_num__", "__identity_name__"}


@pytest.fixture(scope="module")
def journals() -> Iterator[list[HelperJournal]]:
    with temporary_journals(2, "x25519") as made:
        yield made


@pytest.fixture(scope="module")
def request_for(journals: list[HelperJournal]) -> Request:
    return Request(journals)


class Request:
    """Requests of a server for a report."""

    def __init__(self, journals: list[HelperJournal]) -> None:
        self.journals = journals
        self.trusted = [journal.public[1].hex() for journal in journals]

    def params(self, message: bytes, **more: Any) -> OneShotParams:
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
        endorsed: OneShotParams | None = None,
        **more: Any,
    ) -> Shareable:
        if message is None:
            message = write_model(Model(task, 0, 1, {"w": np.zeros(LENGTH)}))
        params = self.params(message, **more)
        endorsed = endorsed or params
        registry = Registry({0: make_identity(0).public}) if params.active else None
        helpers = [Helper(endorsed, one, registry=registry) for one in self.journals]
        data = b"".join(helper.endorse() for helper in helpers)
        name = task_id(params.digest, 0, 0, step)
        frame = encode(Task(name, 0, 0, step, params.to_bytes(), message, data))
        request = Shareable()
        request["task"] = frame
        return request


class Returning(Executor):
    """Executor that returns, or raises, what it has."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result, self.ran = result, 0
        self.got, self.context = Shareable(), FLContext()

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
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


def site_of(root: Path, trusted: list[str], executor: Executor, **more: Any) -> Site:
    """Return a site that filters in its job."""
    settings = {"data_filters": [SecAggFilter()], "result_filters": [SecAggFilter()]}
    policy = SitePolicy(helpers=trusted)
    return Site("site-1", executor, policy, root=root, executor=executor, **settings | more)


def scope_of(*results: Filter) -> Scope:
    """Return the scope that ``local/privacy.json`` of a site makes."""
    scope = Scope()
    scope.add_task_data_filter(SecAggFilter(), FilterKey.IN)
    for one in results or (SecAggFilter(),):
        scope.add_task_result_filter(one, FilterKey.OUT)
    return scope


def site_wide(*results: Filter) -> dict[str, Any]:
    """Return options of `site_of` for a site that filters all jobs."""
    return {"data_filters": [], "result_filters": [], "scope": scope_of(*results)}


def performed(site: Site, name: str, data: Shareable) -> tuple[Shareable, Network]:
    network = Network([site])
    return network.perform(site, name, data), network


def vector_in(
    reply: Shareable, request_for: Request, params: OneShotParams, weight: int | None = None
) -> Any:
    """Return the sum of a report and two of zeros, which the helpers open."""
    accumulator = Accumulator(params)
    accumulator.add(read_answer(reply["answer"], 1 << 20, 0, "report").data)
    for u in (1, 2):
        accumulator.add(report(np.zeros(LENGTH), params, u, weight))
    helpers = [Helper(params, journal) for journal in request_for.journals]
    for helper in helpers:
        for boxes in accumulator.boxes(helper.number):
            assert not helper.check(boxes)
    request = accumulator.request()
    return accumulator.result([helper.open(request) for helper in helpers]).sum


def trained(value: float = 1.0) -> Shareable:
    return FLModelUtils.to_shareable(FLModel(params={"w": np.full(LENGTH, value)}))


def test_result_leaves_as_a_report(tmp_path: Path, request_for: Request) -> None:
    message = write_model(Model("train", 0, 1, {"w": np.zeros(LENGTH)}))
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor)
    params = request_for.params(message, session=bind(b"opened", message))
    request = request_for(message, session=params.session)
    reply, network = performed(site, "train", request)
    assert reply.get_return_code() == ReturnCode.OK
    np.testing.assert_array_equal(vector_in(reply, request_for, params), 1.0)
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
def test_no_array_number_or_text_leaves(
    request_for: Request, result: Any, name: str, asked: bool
) -> None:
    with tempfile.TemporaryDirectory() as root:
        site = site_of(Path(root), request_for.trusted, Returning(result), **site_wide())
        data = request_for(task=name) if asked else Shareable()
        reply, network = performed(site, name, data)
        check_leaves(network)
    # whatever the executor returned
    assert ("answer" in reply) is (reply.get_return_code() == ReturnCode.OK) is asked


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


@pytest.mark.parametrize("name", ["train", "validate", "submit_model"])
def test_task_that_is_no_request_is_not_performed(
    tmp_path: Path, request_for: Request, name: str
) -> None:
    executor = Returning(trained())
    site = site_of(
        tmp_path,
        request_for.trusted,
        executor,
        **site_wide(),
    )
    plain = FLModelUtils.to_shareable(FLModel(params={"w": np.zeros(LENGTH)}))
    for data in (Shareable(), plain, Shareable({"task": "text"}), Shareable({"task": b"x"})):
        reply, _ = performed(site, name, data)
        assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
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
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_request_that_fails_a_check_is_not_performed(
    tmp_path: Path, request_for: Request, wrong: dict[str, Any]
) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor)
    reply, _ = performed(site, "train", request_for(**wrong))
    assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
    assert executor.ran == 0


def test_parameters_without_their_endorsement_are_rejected(
    tmp_path: Path, request_for: Request
) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor)
    request = request_for(endorsed=request_for.params(b"another message"))
    reply, _ = performed(site, "train", request)
    assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
    assert executor.ran == 0


@pytest.mark.parametrize("missing", ["data", "result"])
def test_half_of_the_filter_lets_no_weights_leave(
    tmp_path: Path, request_for: Request, missing: str
) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor, **{f"{missing}_filters": []})
    reply, network = performed(site, "train", request_for())
    assert reply.get_return_code() != ReturnCode.OK
    assert executor.ran == (missing == "data")
    check_leaves(network)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_filters_of_the_site_change_the_update(
    tmp_path: Path, request_for: Request, first: bool
) -> None:
    """They come before those of the job, so noise of the site stands before its own filter."""
    message = write_model(Model("train", 0, 1, {"w": np.zeros(LENGTH)}))
    session = bind(b"noise %d" % first, message)
    order = (AddOne(), SecAggFilter()) if first else (SecAggFilter(), AddOne())
    site = site_of(
        tmp_path,
        request_for.trusted,
        Returning(trained()),
        **site_wide(*order),
    )
    reply, _ = performed(site, "train", request_for(message, session=session))
    params = request_for.params(message, session=session)
    found = vector_in(reply, request_for, params)
    np.testing.assert_array_equal(found, 2.0 if first else 1.0)


def test_site_and_job_may_both_have_the_filter(tmp_path: Path, request_for: Request) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor, scope=scope_of())
    reply, _ = performed(site, "train", request_for())
    assert reply.get_return_code() == ReturnCode.OK
    assert set(reply) == {"answer", "__headers__"}


class Replacing(Filter):
    """Filter of a job that makes a result of its own."""

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        return trained()


def test_result_after_the_report_is_blocked(tmp_path: Path, request_for: Request) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor, scope=scope_of())
    site.result_filters = [Replacing(), SecAggFilter()]
    reply, network = performed(site, "train", request_for())
    assert reply.get_return_code() == ReturnCode.TASK_RESULT_FILTER_ERROR
    check_leaves(network)


def test_report_of_one_task_is_no_result_of_the_next(tmp_path: Path) -> None:
    context = FLContext()
    for task in ("first", "second"):
        context.set_prop(FLContextKey.TASK_ID, task)
        assert noted(context) is None
        reply = note(context, Shareable())
        assert is_own(context, reply)
        assert not is_own(context, Shareable())


def test_policy_of_the_site_may_be_below_the_default(
    tmp_path: Path, request_for: Request
) -> None:
    site = site_of(tmp_path, request_for.trusted, Returning(trained()))
    for policy, code in [
        (SitePolicy(helpers=request_for.trusted), ReturnCode.TASK_DATA_FILTER_ERROR),
        (SitePolicy(helpers=request_for.trusted, min_threshold=1), ReturnCode.OK),
    ]:
        site.policy = policy
        reply, _ = performed(site, "train", request_for(threshold=1))
        assert reply.get_return_code() == code


WEIGHTED = {"max_weight": 10, "modulus_bits": 40}


def weighted(**meta: object) -> Shareable:
    return FLModelUtils.to_shareable(FLModel(params={"w": np.ones(LENGTH)}, meta=meta))


def failed(code: str = ReturnCode.EXECUTION_EXCEPTION) -> Shareable:
    result = weighted(NUM_STEPS_CURRENT_ROUND=3)
    result.set_return_code(code)
    return result


@pytest.mark.parametrize(
    ("result", "sum_"),
    [
        (weighted(NUM_STEPS_CURRENT_ROUND=3), 3),
        (weighted(NUM_STEPS_CURRENT_ROUND=4711), 10),
        (weighted(), 0),
        (weighted(NUM_STEPS_CURRENT_ROUND=True), 0),
        (weighted(NUM_STEPS_CURRENT_ROUND=2.0), 0),
        (weighted(NUM_STEPS_CURRENT_ROUND=-1), 0),
        (weighted(NUM_STEPS_CURRENT_ROUND=NUMBER), 0),
        (FLModelUtils.to_shareable(FLModel(params={"v": np.ones(LENGTH)})), 0),
        (FLModelUtils.to_shareable(FLModel(params={"w": np.full(LENGTH, math.nan)})), 0),
        (make_reply(ReturnCode.TASK_ABORTED), 0),
        (Shareable(), 0),
        (failed(), 0),
        (None, 0),
        (ValueError(TEXT), 0),
        (RuntimeError(TEXT), 0),
        (UnsafeJobError(TEXT), 0),
    ],
    ids=[
        *("fits", "above", "missing", "bool", "float", "negative", "fraction", "names", "nan"),
        *("aborted", "empty", "failed", "none", "ValueError", "RuntimeError", "unsafe"),
    ],
)
def test_any_result_leaves_as_a_report_of_one_size(
    tmp_path: Path, request_for: Request, result: Any, sum_: float
) -> None:
    """Refusals would tell the server numbers of a site, since it chooses the bounds."""
    message = write_model(Model("train", 0, 1, {"w": np.zeros(LENGTH)}))
    settings = WEIGHTED | {"session": bind(os.urandom(8), message)}
    params, request = request_for.params(message, **settings), request_for(message, **settings)
    site = site_of(tmp_path, request_for.trusted, Returning(result))
    request.add_cookie("workflow", "of the server")
    reply, network = performed(site, "train", request)
    check_leaves(network)
    assert reply.get_return_code() == ReturnCode.OK
    assert reply.get_cookie("workflow") == "of the server"
    assert len(reply["answer"]) == len(encode(Answer(bytes(16), report_of_zeros(params))))
    np.testing.assert_array_equal(vector_in(reply, request_for, params, 0), sum_)
    reply, _ = performed(site, "train", request)  # a failed training, too, uses up the round
    assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
    assert site.executor.ran == 1


def report_of_zeros(params: OneShotParams) -> bytes:
    return report(np.zeros(LENGTH), params, 9, None if params.max_weight is None else 0)


@pytest.mark.parametrize(
    "other", [{"max_weight": 11}, {"max_weight": None}, {"encoding": FixedPoint(clip=1.0)}]
)
def test_first_sum_fixes_the_bounds_of_all_jobs(
    tmp_path: Path, request_for: Request, other: dict[str, Any]
) -> None:
    executor = Returning(weighted(NUM_STEPS_CURRENT_ROUND=3))
    site = site_of(tmp_path, request_for.trusted, executor)
    codes = []
    for job, more in enumerate(({}, other, {})):
        network = Network([site], job=f"job {job}")
        reply = network.perform(site, "train", request_for(**WEIGHTED | more))
        codes.append(reply.get_return_code())
    assert codes == [ReturnCode.OK, ReturnCode.TASK_DATA_FILTER_ERROR, ReturnCode.OK]
    assert executor.ran == 2


def test_bounds_of_the_policy_hold_from_the_first_sum(
    tmp_path: Path, request_for: Request
) -> None:
    executor = Returning(weighted(NUM_STEPS_CURRENT_ROUND=3))
    site = site_of(tmp_path, request_for.trusted, executor)
    site.policy = SitePolicy(helpers=request_for.trusted, clip=2.0**13, max_weight=10)
    for job, more in enumerate(({"max_weight": 11}, {})):
        reply = Network([site], job=f"job {job}").perform(
            site, "train", request_for(**WEIGHTED | more)
        )
    assert reply.get_return_code() == ReturnCode.OK
    assert executor.ran == 1


def test_a_job_cannot_vary_the_bounds_by_a_policy_of_its_own(
    tmp_path: Path, request_for: Request
) -> None:
    executor = Returning(weighted(NUM_STEPS_CURRENT_ROUND=3))
    site = site_of(tmp_path, request_for.trusted, executor)
    codes = []
    for job, weight in enumerate((10, 11, 10)):
        site.policy = SitePolicy(helpers=request_for.trusted, clip=2.0**13, max_weight=weight)
        reply = Network([site], job=f"job {job}").perform(
            site, "train", request_for(**WEIGHTED | {"max_weight": weight})
        )
        codes.append(reply.get_return_code())
    assert codes == [ReturnCode.OK, ReturnCode.TASK_DATA_FILTER_ERROR, ReturnCode.OK]
    assert executor.ran == 2


def test_clipping_warning_does_not_block_the_report(
    tmp_path: Path, request_for: Request
) -> None:
    """Warnings are errors in these tests, and may be errors at a site."""
    site = site_of(tmp_path, request_for.trusted, Returning(trained(2.0**14)))
    reply, _ = performed(site, "train", request_for())
    assert reply.get_return_code() == ReturnCode.OK


HALF = 2.0**-17
"""Half a step of the requests' encoding."""
LOST = {
    "far below": 1e-9,
    "negative": -1e-9,
    "quarter of a step": HALF / 2,
    "just below half": math.nextafter(HALF, 0.0),
    "negative, just below half": math.nextafter(-HALF, 0.0),
    "smallest normal": 2.0**-1022,
    "tenth": HALF / 10,
    "close to half": 0.99 * HALF,
    "billionth": 1e-9 * HALF,
    "tiny": 1e-200,
}
KEPT = {
    "zeros": 0.0,
    "half a step": HALF,
    "negative half": -HALF,
    "a step": 2 * HALF,
    "just above half": math.nextafter(HALF, 1.0),
    "one": 1.0,
    "minus one": -1.0,
    "the clip": 2.0**13,
    "minus the clip": -(2.0**13),
    "thousandth": 1e-3,
}


@pytest.mark.parametrize("name", LOST)
def test_site_hears_of_an_update_below_half_a_step(
    name: str, tmp_path: Path, request_for: Request
) -> None:
    site = site_of(tmp_path, request_for.trusted, Returning(trained(LOST[name])))
    with pytest.warns(PrecisionWarning, match="fractional_bits") as caught:
        reply, _ = performed(site, "train", request_for())
    assert [one.category for one in caught] == [PrecisionWarning]
    assert str(LOST[name]) not in str(caught[0].message)
    assert reply.get_return_code() == ReturnCode.OK


@pytest.mark.parametrize("name", LOST)
def test_precision_warning_does_not_block_the_report(
    name: str, tmp_path: Path, request_for: Request, caplog: pytest.LogCaptureFixture
) -> None:
    """Warnings are errors in these tests, and may be errors at a site."""
    site = site_of(tmp_path, request_for.trusted, Returning(trained(LOST[name])))
    with warnings.catch_warnings(category=PrecisionWarning, action="error"):
        reply, _ = performed(site, "train", request_for())
    assert reply.get_return_code() == ReturnCode.OK
    assert "the report ended with PrecisionWarning" in caplog.text


@pytest.mark.parametrize("name", KEPT)
def test_site_hears_nothing_of_other_updates(
    name: str, tmp_path: Path, request_for: Request, caplog: pytest.LogCaptureFixture
) -> None:
    site = site_of(tmp_path, request_for.trusted, Returning(trained(KEPT[name])))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reply, _ = performed(site, "train", request_for())
    assert not [one for one in caught if issubclass(one.category, LOSSES)]
    assert reply.get_return_code() == ReturnCode.OK
    assert "Warning" not in caplog.text


@pytest.mark.parametrize("add", [1e-9, -1e-9, HALF / 2])
def test_site_of_four_exchanges_hears_of_an_update_below_half_a_step(add: float) -> None:
    sites = [Site(f"site-{i}", Adding(add), SitePolicy()) for i in (1, 2, 3)]
    start = {"w": np.zeros(3)}
    controller = SecAggFedAvg(num_clients=3, num_rounds=1, model=start, clip=4.0)
    network = Network(sites)
    with pytest.warns(PrecisionWarning, match="fractional_bits") as caught:
        network.run(controller)
    assert [one.category for one in caught] == [PrecisionWarning] * 3
    assert network.codes["take_part"] == [ReturnCode.OK] * 3


def test_site_trains_for_its_own_configuration_only(
    tmp_path: Path, request_for: Request, caplog: pytest.LogCaptureFixture
) -> None:
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor)
    site.app = tmp_path / "app"
    (site.app / "config").mkdir(parents=True)
    (site.app / "config/config_fed_client.json").write_text("{}")
    answer, _ = performed(site, "train", Shareable({"step": "configure"}))
    assert executor.ran == 0
    for agreed, code in (
        (b"", ReturnCode.TASK_DATA_FILTER_ERROR),
        (bytes(32), ReturnCode.TASK_DATA_FILTER_ERROR),
        (answer["configuration"], ReturnCode.OK),
    ):
        model = Model("train", 0, 1, {"w": np.zeros(LENGTH)}, (), agreed)
        reply, _ = performed(site, "train", request_for(write_model(model)))
        assert reply.get_return_code() == code
    assert executor.ran == 1
    assert "check configuration" in caplog.text


LIE = "of the server, for this site"


def test_trainer_sees_nothing_outside_the_agreed_message(
    tmp_path: Path, request_for: Request
) -> None:
    """A server that lies puts a text wherever it can."""
    executor = Returning(trained())
    site = site_of(tmp_path, request_for.trusted, executor)
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

    network = Network([site])
    network.context = context
    reply = network.perform(site, "train", request)
    assert reply.get_return_code() == ReturnCode.OK
    assert reply.get_cookie("lr") == LIE
    executor.got.set_cookie_jar(None)  # which FLARE gets back after the training
    check_agreed(executor)


def check_agreed(executor: Returning) -> None:
    model, fl_ctx = executor.got, executor.context
    assert LIE not in str(list(leaves(model)))
    peer = fl_ctx.get_peer_context()
    assert peer.get_all_public_props() == {"__run_num__": "job 1"}
    own = {"__engine__", "__runner__", "__manager__", "__peer_ctx__"}
    found = {key: fl_ctx.get_prop(key) for key in fl_ctx.get_prop_keys() if key not in own}
    assert LIE not in str(found)
    assert (found["__task_name__"], found["__task_id__"]) == ("train", "train 0")
    assert found["__task_data__"]["DXO"] == model["DXO"]
    assert fl_ctx.get_identity_name() == "site-1"
    assert fl_ctx.get_job_id() == "job 1"


def test_log_of_the_filter_has_no_text_of_an_error(
    tmp_path: Path,
    request_for: Request,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """FLARE can send a site's log to the server."""

    def fail(*args: object) -> None:
        raise ValueError(TEXT)

    monkeypatch.setattr("secagg.flare.training.read_update", fail)
    site = site_of(tmp_path, request_for.trusted, Returning(trained()))
    performed(site, "train", request_for())
    assert "ValueError" in caplog.text
    assert TEXT not in caplog.text


def test_executor_of_four_exchanges_passes_the_filter_of_its_site(tmp_path: Path) -> None:
    sites = [Site(f"site-{i}", Adding(i / 8), SitePolicy()) for i in (1, 2, 3)]
    for site in sites:
        site.scope = scope_of(AddOne(), SecAggFilter())
        site.scope.add_task_data_filter(AddOne(), FilterKey.IN)
    controller = SecAggFedAvg(num_clients=3, num_rounds=1, model={"w": np.zeros(3)}, clip=4.0)
    network = Network(sites)
    model = network.run(controller)
    assert network.codes["take_part"] == [ReturnCode.OK] * 3
    # the model that sites train and their update both have the noise
    np.testing.assert_allclose(model["w"], 2.25, atol=2**-14)


@pytest.mark.parametrize(
    "fields",
    [{}, {"key": bytes(32)}, {"signature": bytes(99)}],
    ids=["none", "key", "signature"],
)
def test_result_that_looks_like_the_executors_is_blocked(fields: dict[str, bytes]) -> None:
    made = make_reply(ReturnCode.OK)
    made.update(fields)
    site = Site("site-1", Adding(0), executor=Returning(made), scope=scope_of())
    reply, _ = performed(site, "secagg", Shareable())
    assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
    assert not fields.keys() & reply.keys()
    assert site.executor.ran == 0  # a trainer of all tasks sees this one neither
