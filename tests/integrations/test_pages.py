"""The score as a person sees it, in the web pages of MLflow and of Phoenix.

``SNNE_GUARD_SCREENSHOTS=docs/images`` keeps what the documentation shows of them.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.integrations.conftest import Needs
from tests.support.browsing import keep
from tests.support.examples import run
from tests.support.tracing_servers import TracingServer

SECONDS = 60.0
"""How long a page may take to show what it has; it is read as soon as it does."""
pytestmark = pytest.mark.usefixtures("embedded")


def text(browser: Any) -> str:
    """Return what the page shows."""
    said: str = browser.execute_script("return document.body.innerText")
    return said


def await_text(browser: Any, *wanted: str) -> str:
    """Return what the page shows once all of it is there."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        said = text(browser)
        if all(each in said for each in wanted):
            return said
        time.sleep(0.2)
    pytest.fail(f"{wanted} is not on {browser.current_url}:\n{text(browser)}")


def example(name: str, server: TracingServer) -> str:
    done = run(f"integrations/with_{name}", server.url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(printed: str) -> str:
    """Return the score that an example read back."""
    found = re.search(r"snne_guard.uncertainty = (0\.\d+)", printed)
    assert found, printed
    return found[1]


def test_mlflow_shows_the_score_beside_the_trace(
    browser: Any, mlflow_at: TracingServer, mlflow_client: Any
) -> None:
    printed = example("mlflow", mlflow_at)
    trace = re.search(r"trace (tr-\w+)", printed)
    assert trace
    experiment = mlflow_client.MlflowClient(mlflow_at.url).get_experiment_by_name(
        "snne-guard"
    )
    page = f"/#/experiments/{experiment.experiment_id}/traces"
    browser.get(f"{mlflow_at.url}{page}?selectedEvaluationId={trace[1]}")
    await_text(browser, "Assess\n2", "The chemical symbol for gold is Au")
    browser.execute_script(
        "[...document.querySelectorAll('button')]"
        ".find(button => button.innerText.startsWith('Assess')).click()"
    )
    await_text(browser, "Feedback (2)", "snne_guard.uncertainty", number(printed))
    keep(browser, "mlflow", x=0, y=0, width=980, height=480)


def test_phoenix_shows_the_score_beside_the_span(
    browser: Any, phoenix_at: TracingServer, needs: Needs
) -> None:
    printed = example("phoenix", phoenix_at)
    client = needs("phoenix.client").Client(base_url=phoenix_at.url)
    (span,) = client.spans.get_spans(
        project_identifier="snne-guard", name="SNNEGuard", limit=1
    )
    browser.get(f"{phoenix_at.url}/redirects/spans/{span['context']['span_id']}")
    # It shows two places, not rounded.
    shown = f"\N{NO-BREAK SPACE}{number(printed)[:4]}"
    await_text(browser, "Output", "Annotations", "snne_guard.uncertainty", shown)
    keep(browser, "phoenix", x=350, y=46, width=1050, height=600)
