"""Models where the Hugging Face Hub cannot be reached: it is asked once, and told."""

from __future__ import annotations

import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from snne_guard import score
from snne_guard._hub import from_hub
from snne_guard.errors import MissingExtraError
from snne_guard.sampling.huggingface import HuggingFaceModel

NAME = "someone/some-model"
KEPT_ONLY = {"local_files_only": True}


class Hub:
    """A server in the place of the Hub, which counts what it is asked for.

    Attributes:
        status: What it answers with, 0: it hangs up instead.
    """

    def __init__(self, status: int) -> None:
        hub = self
        self.status, self.asked = status, list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub.asked.append(self.path)
                if hub.status:
                    self.send_response(hub.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hub(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Generator[Hub]:
    found = Hub(request.param)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", found.url)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        f"{found.url}/{{repo_id}}/{{filename}}",
    )
    monkeypatch.setattr("snne_guard._hub._PAUSE", 0.0)
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


GONE = pytest.mark.parametrize("hub", [0], indirect=True)


@pytest.mark.parametrize("hub", [200, 401, 404], indirect=True)
def test_whatever_the_hub_answers_it_is_there(hub: Hub) -> None:
    assert from_hub(NAME) == {}
    assert len(hub.asked) == 1


@GONE
def test_one_that_does_not_answer_is_asked_twice(hub: Hub) -> None:
    assert from_hub(NAME, revision="v9") == KEPT_ONLY
    assert len(hub.asked) == 2


@GONE
def test_a_folder_is_on_no_hub(hub: Hub, tmp_path: Path) -> None:
    assert from_hub(str(tmp_path)) == {}
    assert not hub.asked


def test_who_wants_no_network_asks_nobody() -> None:
    assert from_hub(NAME) == KEPT_ONLY  # as these tests are run


@GONE
def test_a_score_by_a_model_that_cannot_be_fetched_is_refused_at_once(hub: Hub) -> None:
    with pytest.raises(MissingExtraError) as caught:
        score(["Paris", "Lyon", "Nice"], method="dse")
    assert "hf download microsoft/deberta-v2-xlarge-mnli" in str(caught.value)
    assert len(hub.asked) == 2


@GONE
def test_a_model_to_draw_from_is_not_asked_for_file_by_file(hub: Hub) -> None:
    with pytest.raises(OSError, match="in the cached files"):
        HuggingFaceModel.from_pretrained(NAME)
    assert len(hub.asked) == 2
    with pytest.raises(OSError, match="in the cached files"):
        HuggingFaceModel.from_pretrained(NAME, local_files_only=True)
    assert len(hub.asked) == 2
