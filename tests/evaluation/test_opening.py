"""Models that are named in brackets: loaded once, before a line is read, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from snne_guard.errors import SnneGuardError
from snne_guard.evaluation import evaluate
from snne_guard.similarity import NLI, rouge_l
from snne_guard.types import FloatArray
from tests.support.evaluating import by_name, evaluated, questions
from tests.support.tiny_nli import save_model


class Own:
    """A similarity that counts how often it is asked."""

    cache_key = "1"
    asked = 0

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        self.asked += 1
        return rouge_l(texts)


OWN = Own()


def test_a_model_in_brackets_is_kept_and_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept = save_model(tmp_path / "nli"), tmp_path / "kept"
    asked: list[int] = []
    ask = NLI.probabilities

    def counted(
        self: NLI, texts: Sequence[str], /, **options: str | None
    ) -> FloatArray:
        asked.append(len(texts))
        return ask(self, texts, **options)

    monkeypatch.setattr(NLI, "probabilities", counted)
    methods = f"dse[nli:{folder}],luq[nli:{folder}]"
    rows = questions(4)
    first = by_name(evaluated(tmp_path, *rows, methods=methods, cache=kept))
    assert len(asked) == 4
    again = by_name(evaluated(tmp_path, *rows, methods=methods, cache=kept))
    named = evaluated(
        tmp_path, *rows, methods=methods, models=[f"nli:{folder}"], cache=kept
    )

    assert len(asked) == 4
    for name in methods.split(","):
        assert first[name].status == "evaluated"
        assert again[name].uncertainty == first[name].uncertainty
        assert by_name(named)[name].uncertainty == first[name].uncertainty


@pytest.mark.parametrize("where", ["methods", "similarity", "models"])
def test_a_model_that_cannot_be_had_fails_before_a_line_is_read(
    tmp_path: Path, where: str
) -> None:
    name = f"nli:{tmp_path / 'none'}"
    given = {"methods": f"dse[{name}]", "similarity": name, "models": [name]}

    with pytest.raises(SnneGuardError, match="none"):
        evaluate(tmp_path / "no file", **{where: given[where]})  # type: ignore[arg-type]


def test_an_object_of_ones_own_in_brackets_is_kept(tmp_path: Path) -> None:
    for _ in range(2):
        one = evaluated(
            tmp_path,
            *questions(3),
            methods=f"snne[{__name__}:OWN]",
            cache=tmp_path / "kept",
        )
        assert by_name(one)[f"snne[{__name__}:OWN]"].status == "evaluated"

    assert OWN.asked == 3
