from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.server import create_app, load_config
from tests.cli.support import run
from tests.server.support import key, serving
from tests.support.calibrations import calibration
from tests.support.openai_server import APART, CHAT, Server, always, split

UPSTREAM = "http://127.0.0.1:9/v1"
FILE = f"""
upstream = "{UPSTREAM}"

[policies.standard]
n = 6
threshold = [0.3, 0.8]
on_uncertain = "fallback"
fallback = "larger"
prices = {{ prompt = 1.0, completion = 4 }}
views = ["plain", "reasoning"]

[policies.strict]
threshold = 0.2
on_uncertain = "refuse"
self_check = true

[keys.team-a]
sha256 = "{key("a")["sha256"]}"
policies = ["strict", "standard"]
upstream_key = "UP"

[keys.team-b]
sha256 = "{key("b")["sha256"]}"
policies = ["standard"]
files = true
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "serve.toml"
        path.write_text(text, errors="surrogatepass")
        return path

    return write


@pytest.fixture
def upstream() -> Iterator[Server]:
    with Server(split("Paris", *APART)) as server:
        yield server


def test_a_policy_takes_what_it_does_not_give_from_a_calibration(
    upstream: Server, tmp_path: Path
) -> None:
    path = tmp_path / "guard.json"
    calibration(model="test-model", n=3, temperature=0.8).save(path)
    with serving(upstream.url, policy={"calibration": str(path)}) as server:
        create: Any = server.client().chat.completions.create
        records = [
            create(**{**CHAT, "model": name}).snne_guard for name in ("test-model", "o")
        ]
    assert [record["n_requested"] for record in records] == [3, 3]
    assert ["uncalibrated" in record["reasons"] for record in records] == [False, True]
    assert {asked.body["temperature"] for asked in upstream.samples} == {0.8}


def test_check_says_what_each_key_may_do(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP", "sk-secret")
    found = run("serve", "--check", "--config", write(FILE), "--host", "0.0.0.0")  # noqa: S104
    assert found.exit_code == 0, found.output
    assert "listens on 0.0.0.0:8484" in found.stdout
    assert (
        "key team-a: strict (default), standard; upstream key from UP; no files"
        in found.stdout
    )
    assert "key team-b: standard (default); no upstream key; files" in found.stdout
    assert "policy strict: threshold = 0.2, on_uncertain = refuse" in found.stdout
    assert "sk-secret" not in found.output


def test_options_and_the_environment_go_before_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP", "k")
    monkeypatch.setenv("SNNE_GUARD_PORT", "9000")
    found = run("serve", "--check", "--config", write(FILE), "--threshold", "0.1")
    assert "listens on 127.0.0.1:9000" in found.stdout
    assert found.stdout.count("threshold = 0.1") == 2


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("n = 6", "n = 6\nsamples = 3", "policy standard: unknown option 'samples', "),
        ("threshold = 0", "treshold = 0", "'treshold', did you mean 'threshold'?"),
        (
            "files =",
            "file =",
            "'file', did you mean 'files'?",
        ),
        ("upstream =", "port = 1\nupstreem =", "did you mean 'upstream'?"),
        ("http://127.0.0.1:9/v1", "127.0.0.1:9/v1", "expected a URL such as https"),
        ("http://127.0.0.1:9/v1", "ftp://a/v1", "expected a URL such as https"),
        ("http://127.0.0.1:9/v1", "https://a/v1?key=sk-my-own-key", "expected a URL"),
        ('fallback = "larger"', "", "--fallback MODEL, or fallback ="),
        ("self_check", 'calibration = "guard.json"\nself_check', "guard.json: No such"),
        ('"larger"', "3", "policy standard: expected fallback to be the name"),
        ("[0.3, 0.8]", "[0.3, 0.8, 0.9]", "expected the pair (accept, refuse)"),
        ("completion = 4", "complete = 4", "did you mean 'completion'?"),
        (", completion = 4", "", "prices to have prompt and completion"),
        (
            '["standard"]',
            '["standrad"]',
            "'standrad', did you mean 'standard'?",
        ),
        (
            "http://127",
            "http://me:secret@127",
            "upstream: expected a URL such as",
        ),
        (f'upstream = "{UPSTREAM}"', "", "expected an upstream, such as --upstream"),
        (key("a")["sha256"], "sk-my-own-key", "keys.team-a.sha256: String should"),
        ("upstream =", "upstream", "is not valid TOML"),
        ("n = 6", "n = " + "[" * 5000 + "]" * 5000, "TOML: it is nested too deeply"),
        ("n = 6", "n = " + "9" * 5000, "is not valid TOML: Exceeds the limit"),
        ("n = 6", "n = " + "9" * 4000, "policy standard: expected n to be a whole"),
        ("n = 6", "n = 1_000_000_000_000_000_000", "and at most 10000, got 1000"),
        ("n = 6", "n = 0x" + "f" * 9000, "policy standard: Exceeds the limit"),
        ("0.2", "1e999", "policy strict: expected threshold"),
        ("completion = 4", "completion = nan", "policy standard: expected the price"),
        ("upstream =", 'x = "\ud800"\nupstream =', "is not valid TOML: 'utf-8' codec"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch, old: str, new: str, told: str
) -> None:
    monkeypatch.setenv("UP", "sk-upstream")
    with pytest.raises(ConfigurationError) as caught:
        create_app(load_config(write(FILE.replace(old, new, 1))))
    assert told in str(caught.value)
    assert "sk-my-own-key" not in str(caught.value)


def test_a_missing_key_of_the_upstream_is_named(write: Write) -> None:
    found = run("serve", "--check", "--config", write(FILE))
    assert found.exit_code == 2
    assert "key team-a needs the environment variable UP" in found.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", ""])  # noqa: S104
def test_others_are_let_in_only_by_keys(host: str) -> None:
    with pytest.raises(ConfigurationError, match="table"):
        create_app(load_config(upstream=UPSTREAM, host=host))
    keys = {"a": key("a")}
    create_app(load_config(upstream=UPSTREAM, host=host, keys=keys))
    for local in ("127.1.2.3", "::1", "localhost"):
        create_app(load_config(upstream=UPSTREAM, host=local))


def test_a_policy_can_ask_for_sentences(write: Write) -> None:
    text = "It is oak. It was made in 1907."
    options = "spans = true\nspan_threshold = 0.5"
    with Server(split(text, "It is oak.")) as upstream:
        file = write(f'upstream = "{upstream.url}"\n[policies.a]\n{options}')
        with serving(upstream.url, file=file) as running:
            answer = running.client("k").chat.completions.create(**CHAT).to_dict()
    record: Any = answer["snne_guard"]
    assert record["span_threshold"] == 0.5
    found = [(text[s["start"] : s["end"]], s["supported"]) for s in record["spans"]]
    assert found == [("It is oak.", 4), ("It was made in 1907.", 0)]


def test_unknown_keys_stay_outside(upstream: Server) -> None:
    # Somebody has taken the hash of a variable that was empty.
    keys = {"a": key("a"), "empty": key("")}
    sent = [{"authorization": each} for each in ("Bearer", "Bearer b", "a", "Basic a")]
    with serving(upstream.url, keys=keys) as running:
        for headers in ({}, *sent):
            for path in ("v1/responses", "v1/embeddings", "snne/score", "snne/assess"):
                got = httpx.post(f"{running.url}/{path}", json=CHAT, headers=headers)
                assert got.status_code == 401
                assert got.json()["error"]["code"] == "invalid_api_key"
            for path in ("/metrics", "/snne/live", "/snne/events"):
                assert httpx.get(running.url + path, headers=headers).status_code == 404
    assert not upstream.requests


def test_a_key_has_its_policies_and_no_others(
    upstream: Server, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP", "sk-upstream")
    text = FILE.replace(UPSTREAM, upstream.url)
    with serving(upstream.url, file=write(text)) as running:

        def threshold(secret: str, policy: str | None = None) -> float:
            chosen = {} if policy is None else {"x-snne-guard-policy": policy}
            client = running.client(secret, default_headers=chosen)
            answer = client.chat.completions.create(**CHAT)
            record: Any = answer.to_dict()["snne_guard"]
            return float(record["threshold"])

        assert threshold("a") == 0.2
        assert threshold("a", "standard") == 0.3
        assert threshold("b") == 0.3
        sent = {asked.headers.get("authorization") for asked in upstream.requests}
        assert sent == {"Bearer sk-upstream", None}
        for secret, policy in (("b", "strict"), ("a", "none"), ("b", "standard ,a")):
            with pytest.raises(openai.PermissionDeniedError) as caught:
                threshold(secret, policy)
            assert caught.value.code == "policy_not_allowed"


SHOWN = [
    '{"error": {"message": "Incorrect key: Bearer up/secret"}}',
    r'{"error": {"message": "Incorrect key: \u0075p\/s\u0065cret!"}}',
    r'{"error": [[{"up\/secret": ["Incorrect", {"a": "up/s\u0065cret"}]}]]}',
    r'{"error": "Incorrect: {\"key\": \"\\u0075p\\/secr\\u0065t\"}"}',
    r'{"error": "Incorrect: \"{\\\"key\\\": \\\"\\\\u0075p\\\\/secret\\\"}\""}',
]


@pytest.mark.parametrize(("status", "passed_on"), [(401, 502), (400, 400)])
def test_the_servers_key_is_not_shown_in_what_the_upstream_says(
    monkeypatch: pytest.MonkeyPatch, status: int, passed_on: int
) -> None:
    monkeypatch.setenv("UP", "up/secret")
    keys = {"a": key("a", upstream_key="UP")}
    headers = {"retry-after": "up/secret"}
    with (
        Server(always()) as upstream,
        serving(upstream.url, keys=keys) as running,
        serving(upstream.url) as open_to_all,
    ):
        for told in SHOWN:
            upstream.script = always(status=status, body=told, headers=headers)
            answer = running.post(json=CHAT, headers={"authorization": "Bearer a"})
            assert answer.status_code == passed_on
            shown = f"{answer.json()} {answer.headers}"
            assert not any(part in shown for part in ("secret", "cret", "up/", "u0075"))
            own = open_to_all.post(json=CHAT)
            assert own.json() == json.loads(told)  # the client's own key, if any


def test_a_key_may_have_any_letters(upstream: Server) -> None:
    keys = {"a": key("schlüssel")}
    with serving(upstream.url, keys=keys) as running:
        sent = {b"authorization": "Bearer schlüssel".encode()}
        assert httpx.get(f"{running.url}/v1/models", headers=sent).status_code != 401


def test_without_keys_the_clients_key_goes_up_unchanged(upstream: Server) -> None:
    with serving(upstream.url) as running:
        running.client("sk-mine").chat.completions.create(**CHAT)
        running.client("sk-mine").responses.create(
            model="m", input="Capital of France?", stream=True
        ).close()
    assert upstream.requests
    for asked in upstream.requests:
        assert asked.headers["authorization"] == "Bearer sk-mine"
