"""The server as an operator runs it: real processes, ended by their ids."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from snne_guard.evaluation.decision_log import logged_recordings
from tests.cli.support import apart, run
from tests.server.operated import (
    SPLIT,
    body,
    knowing,
    ready,
    rows,
    stopping,
    until,
    value,
)
from tests.server.support import Running, echo, key, port_of, process, serving
from tests.support.openai_server import Server

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


@pytest.fixture
def upstream() -> Iterator[Server]:
    with Server(knowing) as server:
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


# -- Stopping --------------------------------------------------------------------------


def test_on_sigterm_it_is_not_ready_takes_calls_and_ends_those_in_flight(
    upstream: Server, log: Path
) -> None:
    options = ("--decision-log", str(log), "--drain-seconds", "1.5", "--n", "2")
    with process("--upstream", upstream.url, *options) as (server, running):
        with ThreadPoolExecutor() as pool:
            slow = [
                pool.submit(running.post, json=body(f"slow {n}", stream=n % 2 == 0))
                for n in range(4)
            ]
            upstream.wait_for_requests(4)
            assert ready(running) == 200
            server.send_signal(signal.SIGTERM)
            until(lambda: ready(running) == 503, seconds=1)
            assert httpx.get(f"{running.url}/health").status_code == 200
            assert running.post(json=body("new")).status_code == 200
            late = pool.submit(running.post, json=body("slow, at the last moment"))
            answers = [each.result() for each in (*slow, late)]
        assert server.wait(20) == 0
    assert [answer.status_code for answer in answers] == [200] * 5
    for stream in answers[:4:2]:
        assert stream.text.endswith("data: [DONE]\n\n")
        assert '"snne_guard"' in stream.text
    assert [row["status"] for row in rows(log)] == [200] * 6


@pytest.mark.parametrize(
    ("first", "stream"), [(signal.SIGTERM, True), (signal.SIGINT, False)]
)
def test_the_second_signal_ends_at_once(
    *, upstream: Server, log: Path, first: signal.Signals, stream: bool
) -> None:
    options = ("--decision-log", str(log), "--drain-seconds", "60")
    with process("--upstream", upstream.url, *options) as (server, running):
        with ThreadPoolExecutor() as pool:
            hanging = pool.submit(running.post, json=body("hang", stream=stream))
            upstream.wait_for_requests(1)
            server.send_signal(first)
            time.sleep(0.3)
            assert server.poll() is None
            server.send_signal(signal.SIGTERM)
            assert server.wait(5) == 0
            assert hanging.result().json()["error"]["code"] == "server_stopping"
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()
    (row,) = rows(log)
    assert (row["status"], row["reasons"]) == (503, ["cancelled"])


def test_a_call_that_takes_too_long_to_end_has_an_answer_and_its_line(
    upstream: Server, log: Path
) -> None:
    program = (
        "import snne_guard.server.process as process; process.SECONDS_TO_END = 0.5\n"
        "from snne_guard.cli import main; main()"
    )
    options = ("--decision-log", str(log), "--drain-seconds", "0")
    told = ("--upstream", upstream.url, *options)
    with process(*told, program=("-c", program)) as (server, running):
        with ThreadPoolExecutor() as pool:
            hanging = [
                pool.submit(running.post, json=body("hang", stream=stream))
                for stream in (False, True)
            ]
            upstream.wait_for_requests(4)
            server.send_signal(signal.SIGTERM)
            assert [each.result().status_code for each in hanging] == [503, 503]
            assert server.wait(10) == 0
    ended = [(row["status"], row["reasons"]) for row in rows(log)]
    assert ended == [(503, ["cancelled"])] * 2


# -- Reload ----------------------------------------------------------------------------


def config(
    upstream: Server, *names: str, threshold: float = 0.4, more: str = ""
) -> str:
    keys = "\n".join(
        f'[keys.{name}]\nsha256 = "{key(name)["sha256"]}"\npolicies = ["p"]'
        for name in names
    )
    policy = f'[policies.p]\nthreshold = {threshold}\non_uncertain = "refuse"'
    return f'upstream = "{upstream.url}"\n{more}\n{policy}\n{keys}\n'


def ask(running: Running, name: str, question: str = "x") -> Any:
    head = {"authorization": f"Bearer {name}"}
    answer = running.post(json=body(question), headers=head)
    record = answer.json().get("snne_guard") or {}
    return answer.status_code, record.get("threshold")


def test_sighup_reads_the_file_anew_or_keeps_the_old_one(
    upstream: Server, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(config(upstream, "a", "b"))
    with process("--config", str(file), "--log-format", "json") as (server, running):
        assert server.stderr is not None
        assert ask(running, "a") == (200, 0.4)

        def reloaded(text: str) -> str:
            assert server.stderr is not None
            file.write_text(text)
            server.send_signal(signal.SIGHUP)
            for line in server.stderr:
                message = json.loads(line)["message"]
                if "configuration" in message:
                    return str(message)
            raise AssertionError

        with ThreadPoolExecutor() as pool:
            known = len(upstream.requests)
            slow = pool.submit(ask, running, "a", "slow")
            upstream.wait_for_requests(known + 1)
            good = config(upstream, "b", "c", threshold=0.2)
            assert reloaded(good) == "the configuration was read anew"
            assert slow.result() == (200, 0.4)  # by the configuration it began with
        assert ask(running, "a") == (401, None)
        assert ask(running, "b") == ask(running, "c") == (200, 0.2)
        broken = {
            "not TOML [": "not valid TOML",
            good.replace("threshold", "treshold"): "did you mean 'threshold'?",
            good.replace('["p"]', '["q"]', 1): "unknown policy of key b: 'q'",
            good.replace(upstream.url, "me:sk-pass@host"): "expected a URL",
            config(upstream, "a", more='host = "0.0.0.0"'): "host was",
            config(upstream): "no key any more, needs a restart",
            good.replace("threshold = 0.2", 'calibration = "none"'): "none: No such",
            good.replace("threshold = 0.2", "prices = 5"): "prices to be a table",
            good.replace("threshold = 0.2", 'other_models = "m"'): "to be a list",
        }
        for text, told in broken.items():
            message = reloaded(text)
            assert message.startswith("the old configuration stays: ")
            assert told in message
            assert "sk-pass" not in message
            assert ask(running, "c") == (200, 0.2)
            assert ask(running, "a") == (401, None)
        file.unlink()
        server.send_signal(signal.SIGHUP)
        line = next(line for line in server.stderr if "configuration" in line)
        assert "--config names: No such file" in line
        assert ask(running, "c") == (200, 0.2)


# -- The decision log ------------------------------------------------------------------


def test_the_log_is_opened_anew_and_loses_nothing(upstream: Server, log: Path) -> None:
    options = ("--decision-log", str(log), "--n", "2")
    with process("--upstream", upstream.url, *options) as (server, running):
        ids = []
        for turn in range(4):
            answers = [running.post(json=body(f"{n}")) for n in range(5)]
            ids += [answer.headers["x-request-id"] for answer in answers]
            log.rename(log.with_suffix(f".{turn}"))
            server.send_signal(signal.SIGUSR1)
            until(log.exists)
        assert running.post(json=body("x")).status_code == 200
        assert len(rows(log)) == 1
    turned = [row for turn in range(4) for row in rows(log.with_suffix(f".{turn}"))]
    assert [row["request_id"] for row in turned] == ids
    assert all(row.keys() >= {"n", "key", "status", "model", "cost"} for row in turned)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_fails_no_call_and_is_counted(upstream: Server) -> None:
    options = {"decision_log": "/dev/full", "log_texts": True}
    with serving(upstream.url, **options) as running:
        answers = [running.post(json=body("x")) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 5
        text = httpx.get(f"{running.url}/metrics").text
    assert value(text, "snne_guard_decision_log_failures_total") == 5
    assert value(text, "snne_guard_calls_total") == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--decision-log", "/none/d.jsonl"), "name a file in a folder that exists"),
        (("--config", "/none/serve.toml"), "--config names: No such file"),
        (("--upstream", "api.openai.com/v1"), "expected a URL such as https://api"),
        (("--on-uncertain", "fallback", "--threshold", "0.4"), "--fallback MODEL"),
        (("--log-texts",), "log_texts has no effect without decision_log"),
        (("--admin-host", "0.0.0.0"), "has no effect without admin_port"),  # noqa: S104
        (("--log-format", "xml"), "log_format: Input should be 'text' or 'json'"),
        (("--log-level", "loud"), "log_level: Input should be 'debug', "),
        (("--drain-seconds", "-1"), "drain_seconds: Input should be greater than"),
        (
            ("--admin-host", "0.0.0.0", "--admin-port", "0", "--show-texts"),  # noqa: S104
            "leave out --show-texts, or --admin-host",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line_with_the_remedy(
    options: tuple[str, ...], told: str
) -> None:
    found = run("serve", "--check", "--upstream", "http://127.0.0.1:9/v1", *options)
    assert found.exit_code == 2
    assert told in found.stderr.replace("\n", " ")
    assert len(found.stderr.strip().splitlines()) == 1


def test_a_fallback_is_given_as_an_option() -> None:
    options = ("--threshold", "0.1", "--on-uncertain", "fallback", "--fallback", "big")
    found = run("serve", "--check", "--upstream", "http://127.0.0.1:9/v1", *options)
    assert "on_uncertain = fallback, fallback = big" in found.stdout


def test_standard_output_is_a_log(upstream: Server) -> None:
    options = ("--decision-log", "-", "--log-texts", "--threshold", "0.4", "--n", "3")
    with process("--upstream", upstream.url, *options) as (server, running):
        running.post(json=body("a whole prompt", temperature=0.3, stop=["."]))
        running.post(json=body("a whole prompt", stream=True))
        running.post(json=body("a whole prompt, fail"))
        assert server.stdout is not None
        found = [server.stdout.readline() for _ in range(3)]
    first, second, failed = map(json.loads, found)
    assert (first["decision"], first["status"]) == ("accept", 200)
    assert (second["decision"], second["status"]) == ("accept", 200)
    assert (failed["decision"], failed["status"]) == (None, 503)
    assert failed["reasons"] == ["answer_failed"]
    assert "Paris" in found[1]
    assert first["prompt"]["messages"] == body("a whole prompt")["messages"]
    assert first["settings"]["answer_temperature"] == 0.3
    assert first["drawn"]["finish_reasons"] == ["stop"] * 3
    assert len(first["token_logprobs"]) == 2


def test_texts_and_documents_are_logged_only_if_asked_for(
    upstream: Server, log: Path
) -> None:
    policy = {"context": "client", "threshold": 0.4, "min_grounded": 0.5, "n": 2}
    asked = body("a prompt", snne_guard_context=["Paris is the answer."])
    for texts in (False, True):
        fields = {"decision_log": str(log), "log_texts": texts}
        with serving(upstream.url, policy=policy, **fields) as running:
            assert running.post(json=asked).status_code == 200
    plain, whole = rows(log)
    assert not any(text in json.dumps(plain) for text in ("a prompt", "Paris"))
    assert "a prompt" in json.dumps(whole)
    assert whole["grounded"] == plain["grounded"] == 1
    (recording,) = logged_recordings(log)
    assert recording.context == "Paris is the answer."


def test_each_line_is_of_the_call_and_key_that_it_names(
    upstream: Server, tmp_path: Path, log: Path
) -> None:
    names = ["a", "b", "c", "d"]
    file = tmp_path / "serve.toml"
    file.write_text(config(upstream, *names))
    options = {"decision_log": str(log), "log_texts": True, "file": file}
    with serving(upstream.url, **options) as running:

        def one(number: int) -> tuple[str, str, int]:
            name = names[number % 4]
            stream = number % 3 == 0
            head = {"authorization": f"Bearer {name}", "x-request-id": f"r-{number}"}
            given = body(f"{SPLIT if number % 2 else 'x'} {number}", stream=stream)
            answer = running.post(json=given, headers=head)
            return f"r-{number}", name, answer.status_code

        with ThreadPoolExecutor(16) as pool:
            done = [*pool.map(one, range(120))]
    found = {row["request_id"]: row for row in rows(log)}
    assert len(found) == 120
    for name, owner, status in done:
        row = found[name]
        number = int(name.removeprefix("r-"))
        assert (row["key"], row["status"]) == (owner, status)
        assert row["question"].split()[-1] == str(number)
        assert row["decision"] == ("refuse" if number % 2 else "accept")


# -- The admin port --------------------------------------------------------------------


def test_the_admin_port_is_scraped_by_others_only_where_it_was_said(
    upstream: Server, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(config(upstream, "a"))
    elsewhere = {"host": "10.0.0.7:9090"}
    for host, status in ((None, 403), ("0.0.0.0", 200)):  # noqa: S104
        options = ["--config", str(file), "--admin-port", "0"]
        options += ["--admin-host", host] if host else []
        with process(*options) as (server, first):
            both = [first, Running(port=port_of(server))]
            (admin,) = [
                each
                for each in both
                if httpx.get(f"{each.url}/metrics").status_code == 200
            ]
            (api,) = [each for each in both if each is not admin]
            assert ready(admin) == ready(api) == 200
            for path in ("/metrics", "/ready", "/snne/live"):
                got = httpx.get(admin.url + path, headers=elsewhere)
                assert got.status_code == status
            assert ask(api, "a")[0] == 200
            assert ask(admin, "a")[0] == 404
            about = httpx.get(api.url).json()
            assert about["name"] == "snne-guard"
            assert "the admin port" in about["live page and metrics"]
            server.send_signal(signal.SIGTERM)
            until(partial(stopping, admin))


@pytest.mark.parametrize(
    ("option", "told"), [("--admin-port", "the admin port "), ("--port", "")]
)
def test_a_server_without_one_of_its_ports_does_not_start(
    upstream: Server, option: str, told: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = apart("serve", "--upstream", upstream.url, option, port)
    assert found.returncode == 2
    assert f"cannot listen on {told}127.0.0.1:{port}" in found.stderr


def test_a_flood_of_metrics_holds_up_no_call(upstream: Server) -> None:
    with process("--upstream", upstream.url, "--n", "2") as (server, running):
        stop = threading.Event()

        def flood() -> int:
            count = 0
            with httpx.Client() as client:
                while not stop.is_set():
                    client.get(f"{running.url}/metrics").raise_for_status()
                    count += 1
            return count

        def memory() -> int:
            status = Path(f"/proc/{server.pid}/status").read_text("ascii")
            return int(status.partition("VmRSS:")[2].split()[0])

        with ThreadPoolExecutor(8) as pool:
            floods = [pool.submit(flood) for _ in range(4)]
            time.sleep(0.2)
            before = memory()
            names = [f"made-up-{n}" for n in range(20)]
            seconds = []
            for name in names:
                began = time.monotonic()
                answer = running.post(json={**body("x"), "model": name})
                assert answer.status_code == 200
                seconds.append(time.monotonic() - began)
            stop.set()
            assert sum(each.result() for each in floods) > 10
        text = httpx.get(f"{running.url}/metrics").text
        assert sorted(seconds)[17] < 2
        assert memory() - before < 20_000
    assert value(text, "snne_guard_calls_total", model="test-model") == 20
    assert "made-up" not in text


# -- Readiness -------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "told"), [(200, 200), (401, 200), (500, 503)])
def test_ready_can_ask_the_upstream(
    monkeypatch: pytest.MonkeyPatch, status: int, told: int
) -> None:
    with echo() as upstream:
        upstream.status = status
        with serving(upstream.url, ready_upstream=True) as running:
            assert [ready(running) for _ in range(20)] == [told] * 20
            assert [each["path"] for each in upstream.seen] == ["/v1/models"]
            assert "authorization" not in dict(upstream.seen[0]["headers"])
            monkeypatch.setattr("snne_guard.server.health.SECONDS_KNOWN", 0.01)
            upstream.status = 200
            time.sleep(0.05)
            assert ready(running) == 200
        with serving(upstream.url) as running:
            assert ready(running) == 200
    with serving("http://127.0.0.1:1/v1", ready_upstream=True) as running:
        got = httpx.get(f"{running.url}/ready")
    assert (got.status_code, got.json()) == (
        503,
        {"status": "the upstream does not answer"},
    )
