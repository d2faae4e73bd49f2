"""A guard that differs from its calibration does not start, unless that is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage

from snne_guard import (
    ConfigurationError,
    InputError,
    SNNEGuard,
)
from tests.support.calibrated import calibration
from tests.support.calibrated_guards import QUESTION, calibrated, missing_one, said
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    chat_openai,
)
from tests.support.guarding import (
    AGREE,
    Witness,
    record,
    split,
)

# --- construction --------------------------------------------------------------------


def test_another_guard_does_not_start_and_all_that_differs_is_told() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, model="gpt-other")
        with pytest.raises(ConfigurationError) as caught:
            SNNEGuard.from_calibration(
                model,
                calibration(),
                n=10,
                rounds=(5, 10),
                temperature=0.5,
                include_answer=False,
                method="dse",
                similarity="exact",
                tau=0.5,
                prompt_version="v2",
            )
        assert not server.requests
    told = str(caught.value)
    for name in calibration().settings.keys() - {"reply_models"}:
        assert f"{name} was " in told
    assert "model was 'test-model', here it is 'gpt-other'" in told


@pytest.mark.parametrize(("made", "told"), [(0.3, "0.3"), (None, "0.0")])
def test_u_of_another_weight_on_the_answer_starts_no_guard(
    made: float | None, told: str, tmp_path: Path
) -> None:
    settings = dict(calibration(anchor=made).settings)
    if made is None:  # a file from before it was bound
        del settings["anchor"]
    path = tmp_path / "guard.json"
    replace(calibration(), settings=settings).save(path)
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server)
        refused = f"anchor was {told}, here it is 0.7"
        with pytest.raises(ConfigurationError, match=refused):
            SNNEGuard.from_calibration(model, path)
        with pytest.raises(ConfigurationError, match=refused):
            SNNEGuard(model, calibration=path, method="snne")
        assert not server.requests
        allowed = SNNEGuard.from_calibration(model, path, allow_mismatch=True)
        found = record(allowed.invoke(QUESTION))
        assert (found["certified"], found["reasons"]) == (
            False,
            ["calibration_mismatch"],
        )
        # Without weight on the answer nothing of that kind can differ.
        plain = calibration(similarity="rouge_l", anchor=0.0)
        assert said(split("Paris", AGREE), plain)["certified"]


@pytest.mark.parametrize(
    ("method", "similarity"),
    [
        ("snne", "rouge_l"),
        ("dse", "exact"),
        ("num_set", "exact"),
        ("lex_sim", "rouge_l"),
    ],
)
def test_where_no_answer_is_anchored_a_file_of_before_still_binds(
    method: str, similarity: str
) -> None:
    made = calibration(method=method, similarity=similarity)
    settings = {k: v for k, v in made.settings.items() if k != "anchor"}
    with ChatServer(split("Paris", AGREE)) as server:
        calibrated(server, replace(made, settings=settings))
        assert not server.requests


def test_the_prompt_version_must_be_said_again() -> None:
    made = calibration(prompt_version="v1")
    with ChatServer(split("Paris", AGREE)) as server:
        with pytest.raises(ConfigurationError, match="prompt_version was 'v1'"):
            calibrated(server, made)
        guard = calibrated(server, made, prompt_version="v1")
        assert record(guard.invoke(QUESTION))["certified"]


def test_as_an_option_it_changes_no_other_one() -> None:
    made = calibration(n=3)
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server)
        with pytest.raises(ConfigurationError, match="n was 3, here it is 5"):
            SNNEGuard(model, calibration=made)
        # "auto" leaves the method to others, so it is the calibration's.
        guard = SNNEGuard(model, calibration=made, n=3)
        found = record(guard.invoke(QUESTION))
    assert (found["method"], found["certified"]) == ("snne", True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threshold": 0.4}, "threshold= beside calibration="),
        ({"stopping": lambda _score, _missing: True}, "stopping= beside calibration="),
        ({"calibration": 3}, "calibration must be a Calibration or the path"),
        ({"prompt_version": 3}, "prompt_version must be a text or None"),
        ({"method": "calibrated"}, 'method="calibrated" needs a calibration that'),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], told: str
) -> None:
    given = {"calibration": calibration(), **options}
    with pytest.raises(ConfigurationError, match=told):
        SNNEGuard(FakeListChatModel(responses=["Paris"]), **given)


def test_a_mismatch_is_only_allowed_with_a_calibration() -> None:
    model = FakeListChatModel(responses=["Paris"])
    with pytest.raises(ConfigurationError, match="needs a calibration"):
        SNNEGuard(model, threshold=0.4, allow_mismatch=True)
    with pytest.raises(ConfigurationError, match='method="calibrated" needs'):
        SNNEGuard(model, threshold=0.4, method="calibrated")


def test_a_file_that_was_changed_starts_no_guard(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    calibration().save(path)
    path.write_text(path.read_text().replace("0.4", "0.9"))
    model = FakeListChatModel(responses=["Paris"])
    starts: list[Callable[[Path], SNNEGuard]] = [
        lambda file: SNNEGuard.from_calibration(model, file),
        lambda file: SNNEGuard(model, calibration=str(file)),
    ]
    for start in starts:
        with pytest.raises(InputError, match="changed since it was written"):
            start(path)


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    calibration().save(path)
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), path)
        path.unlink()
        copy = guard.model_copy(update={"on_uncertain": "refuse"})
        assert copy.calibration == calibration()
        assert record(copy.invoke(QUESTION))["certified"]


# --- allow_mismatch ------------------------------------------------------------------


def test_an_allowed_mismatch_shows_in_every_assessment() -> None:
    witness = Witness()
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard.from_calibration(
            chat_openai(server, model="other"),
            calibration(),
            n=3,
            method="anchored_snne",
            allow_mismatch=True,
            observers=[witness],
        )
        accepted = guard.assess(QUESTION)
        assert (accepted.decision, accepted.certified) == ("accept", False)
        assert accepted.reasons == ("calibration_mismatch",)
        assert (accepted.threshold, accepted.p_wrong) == (0.4, None)
        server.script = split("", AGREE)
        assert guard.assess(QUESTION).reasons == (
            "calibration_mismatch",
            "answer_empty",
        )
        server.script = missing_one
        short = guard.assess(QUESTION, answer=AIMessage("Paris"))
        assert short.decision == "accept"
        server.script = lambda _request: Reply(status=400, body={"error": {}})
        with pytest.raises(Exception, match="400"):
            guard.assess(QUESTION)
    assert witness.last.reasons == ("calibration_mismatch", "answer_failed")


def test_allowing_what_does_not_differ_changes_nothing() -> None:
    found = said(split("Paris", AGREE), allow_mismatch=True)
    assert (found["certified"], found["reasons"]) == (True, [])


def test_a_model_that_only_its_replies_betray_is_named_where_it_is_allowed() -> None:
    def changed(request: Request) -> Reply:
        return replace(split("Paris", AGREE)(request), model="other")

    found = said(changed, allow_mismatch=True)
    assert (found["decision"], found["certified"]) == ("accept", False)
    assert found["reasons"] == ["uncalibrated_model"]
    short = said(lambda request: replace(missing_one(request), model="other"),
                 allow_mismatch=True)  # fmt: skip
    assert (short["decision"], short["certified"]) == ("flag", False)
