"""What operators take from the examples fits the server: manifest, dashboard, types."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from snne_guard.cost import Cost
from snne_guard.server import create_app, load_config
from snne_guard.server.metrics import Metrics
from snne_guard.types import Assessment, Reply
from tests.server.support import serving
from tests.support.openai_server import CHAT, RESPONSES, Server, always

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

# -- Kubernetes ------------------------------------------------------------------------

WORD = {"type": "string", "minLength": 1}
WORDS = {"type": "object", "additionalProperties": WORD}
QUANTITIES = {
    "type": "object",
    "additionalProperties": {"type": "string", "pattern": r"^\d+(m|Mi|Gi)?$"},
}
WHOLE = {"type": "integer", "minimum": 1}


def exact(optional: dict[str, Any] | None = None, /, **required: Any) -> dict[str, Any]:
    """Return a schema of an object with these fields and no others."""
    properties = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


def many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


NAME = {"type": "string", "pattern": "^[a-z0-9-]{1,63}$"}
META = exact({"annotations": WORDS}, name=NAME, labels=WORDS)
V1 = {"const": "v1"}
PROBE = exact(
    dict.fromkeys(("periodSeconds", "timeoutSeconds", "failureThreshold"), WHOLE),
    httpGet=exact(path={"pattern": "^/"}, port={"enum": ["http", "admin"]}),
)
CONTAINER = exact(
    name=WORD,
    image={"type": "string", "pattern": r"^[\w./-]+:[\w.-]+$"},
    envFrom=many(exact(secretRef=exact(name=WORD))),
    ports=many(exact(name=WORD, containerPort=WHOLE)),
    startupProbe=PROBE,
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    resources=exact(requests=QUANTITIES, limits=QUANTITIES),
    securityContext=exact(
        allowPrivilegeEscalation={"const": False},
        readOnlyRootFilesystem={"const": True},
        capabilities=exact(drop={"const": ["ALL"]}),
    ),
    volumeMounts=many(exact(name=WORD, mountPath=WORD, readOnly={"const": True})),
)
POD = exact(
    automountServiceAccountToken={"const": False},
    terminationGracePeriodSeconds=WHOLE,
    securityContext=exact(
        runAsNonRoot={"const": True},
        runAsUser=WHOLE,
        seccompProfile=exact(type={"const": "RuntimeDefault"}),
    ),
    containers=many(CONTAINER),
    volumes=many(exact(name=WORD, configMap=exact(name=WORD))),
)
SCHEMAS = {
    "ConfigMap": exact(apiVersion=V1, kind=WORD, metadata=META, data=WORDS),
    "Secret": exact(
        apiVersion=V1,
        kind=WORD,
        metadata=META,
        type={"const": "Opaque"},
        stringData=WORDS,
    ),
    "Deployment": exact(
        apiVersion={"const": "apps/v1"},
        kind=WORD,
        metadata=META,
        spec=exact(
            replicas=WHOLE,
            selector=exact(matchLabels=WORDS),
            template=exact(
                metadata=exact({"annotations": WORDS}, labels=WORDS), spec=POD
            ),
        ),
    ),
    "Service": exact(
        apiVersion=V1,
        kind=WORD,
        metadata=META,
        spec=exact(
            selector=WORDS,
            ports=many(exact(name=WORD, port=WHOLE, targetPort=WORD)),
        ),
    ),
}
"""The part of Kubernetes 1.32 that the manifest uses; nothing else may be in it."""


@pytest.fixture
def manifest() -> dict[str, Any]:
    text = (EXAMPLES / "kubernetes.yaml").read_text("utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_the_manifest_is_one_of_kubernetes(manifest: dict[str, Any]) -> None:
    assert manifest.keys() == SCHEMAS.keys()
    for kind, found in manifest.items():
        jsonschema.Draft202012Validator(SCHEMAS[kind]).validate(found)
    if find_spec("kubernetes_validate"):  # with all of the real schemas: 22 MB
        import kubernetes_validate  # type: ignore[import-not-found]

        for found in manifest.values():
            kubernetes_validate.validate(found, "1.32", strict=True)


def test_the_manifest_fits_the_server(
    manifest: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in manifest["Secret"]["stringData"].items():
        monkeypatch.setenv(name, secret)
    file = tmp_path / "serve.toml"
    file.write_text(manifest["ConfigMap"]["data"]["serve.toml"])
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    variables = dict(re.findall(r"SNNE_GUARD_(\w+)=(\S+)", dockerfile))
    config = load_config(
        file, host=variables["HOST"], port=int(variables["PORT"]), decision_log=None
    )
    create_app(config)
    deployment = manifest["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"http": config.port, "admin": config.admin_port}
    (mount,) = container["volumeMounts"]
    assert f"{mount['mountPath']}/serve.toml" == variables["CONFIG"]
    assert pod["terminationGracePeriodSeconds"] > config.drain_seconds + 60
    labels = deployment["template"]["metadata"]["labels"]
    assert labels == deployment["selector"]["matchLabels"]
    assert labels == manifest["Service"]["spec"]["selector"]
    probe = container["readinessProbe"]
    until_known = probe["periodSeconds"] * probe["failureThreshold"]
    assert until_known < config.drain_seconds  # it is out of the service by then
    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile


# -- Grafana ---------------------------------------------------------------------------


def test_the_dashboard_asks_for_what_metrics_print() -> None:
    board = json.loads((EXAMPLES / "grafana-dashboard.json").read_text("utf-8"))
    metrics = Metrics()
    cost = Cost(money=1.0, seconds=1.0)
    given: dict[str, Any] = {"decision": "accept", "uncertainty": 0.5, "cost": cost}
    call = Assessment(id="1", answer=Reply(text="a", model="m"), **given)
    metrics.count("p", call, key="a")
    metrics.upstream_errors.labels(502).inc()
    metrics.responses.labels("/v1/responses", 200).inc()
    printed: dict[str, set[str]] = {}
    for line in metrics.text().splitlines():
        if not line.startswith("#"):
            name, labels = re.findall(r"^(\w+)(\{.*\})? \S+$", line)[0]
            printed.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [variable["query"] for variable in board["templating"]["list"]]
    named: set[str] = set()
    for query in asked:
        names = re.findall(r"snne_guard_\w+", query)
        named |= {*names}
        assert {*names} <= printed.keys(), query
        known = {"instance"}.union(*(printed[name] for name in names))
        used = re.findall(r"by \(([^)]+)\)", query) + re.findall(r"(\w+)=[~\"]", query)
        assert {each.strip() for part in used for each in part.split(",")} <= known
        assert query.count("(") == query.count(")")
    kinds = {re.sub("_(total|sum|count|bucket)$", "", name) for name in named}
    left = {"snne_guard_" + each for each in ("calls", "uncertainty", "call_seconds")}
    assert kinds >= left
    ids = [panel["id"] for panel in board["panels"]]
    assert len({*ids}) == len(ids)


# -- TypeScript and OpenAPI ------------------------------------------------------------

USE = """
import OpenAI from "openai";
import type { SnneGuard } from "./snne-guard.js";
const client = new OpenAI({ baseURL: "http://127.0.0.1:8484/v1" });
const messages = [{ role: "user" as const, content: "Who designed the lamp Aurora?" }];
const completion = await client.chat.completions.create({ model: "m", messages });
const record: SnneGuard = completion.snne_guard;
const u: number = record.uncertainty ?? 1;
const create = { model: "m", messages, stream: true as const };
for await (const chunk of await client.chat.completions.create(create))
  console.log(chunk.snne_guard?.reasons.join(), record.decision === "accept", u);
const response = await client.responses.create({ model: "m", input: "Hi" });
console.log(response.snne_guard.certified);
// @ts-expect-error: there is no such decision
console.log(completion.snne_guard.decision === "maybe");
// @ts-expect-error: there is no such field
console.log(response.snne_guard.certainty);
"""


@pytest.mark.slow
def test_typescript_knows_the_field(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node is missing")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    install = [npm, "install", "--no-audit", "--no-fund", "typescript@5", "openai@6"]
    got = subprocess.run(install, cwd=tmp_path, capture_output=True, check=False)  # noqa: S603 - ours
    if got.returncode:
        pytest.skip("the packages are not to be had")
    shutil.copy(EXAMPLES / "snne-guard.d.ts", tmp_path)
    (tmp_path / "use.ts").write_text(USE)
    command = [node, "node_modules/typescript/bin/tsc", "--strict", "--noEmit"]
    command += ["--target", "es2022", "--module", "nodenext", "--skipLibCheck"]
    done = subprocess.run(  # noqa: S603 - ours
        [*command, "use.ts"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_types_have_the_fields_of_the_metadata() -> None:
    text = (EXAMPLES / "snne-guard.d.ts").read_text("utf-8")
    interface = text.partition("interface SnneGuard {")[2].partition("\n}")[0]
    fields = re.findall(r"^  (\w+):", interface, re.MULTILINE)
    assert {*fields} <= Assessment(id="1", answer=None).to_metadata().keys()
    assert {"id", "decision", "uncertainty", "reasons", "cost"} <= {*fields}


def test_the_description_is_what_the_server_does() -> None:
    with Server(always("Paris")) as upstream:
        with serving(upstream.url, policy={"threshold": 0.4}) as running:
            described = httpx.get(f"{running.url}/openapi.json").json()
            body = {"answers": ["Paris", "Rome"]}
            replies = {
                "/v1/chat/completions": running.post(json=CHAT),
                "/v1/responses": running.post("/v1/responses", json=RESPONSES),
                "/snne/assess": running.post("/snne/assess", json=CHAT),
                "/snne/score": running.post("/snne/score", json=body),
                "/health": httpx.get(f"{running.url}/health"),
                "/ready": httpx.get(f"{running.url}/ready"),
            }
            failed = running.post(json={"model": "m", "messages": [], "n": 2})
            upstream.script = always(status=500)
            broken = running.post(json=CHAT)
    assert described["openapi"] == "3.1.0"
    assert re.match(r"\d+\.\d+", described["info"]["version"])
    assert described["paths"].keys() == replies.keys()

    def check(schema: dict[str, Any], value: object) -> None:
        whole = {**schema, "components": described["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)

    for path, reply in replies.items():
        method = reply.request.method.lower()
        answers = described["paths"][path][method]["responses"]
        assert reply.status_code == 200
        check(answers["200"]["content"]["application/json"]["schema"], reply.json())
        for name in answers["200"].get("headers", {}):
            assert name in reply.headers
    error = described["components"]["schemas"]["Error"]
    for reply in (failed, broken):
        check(error, reply.json())
    with pytest.raises(jsonschema.ValidationError):
        check(error, {"message": "no"})
    for path in ("/v1/responses", "/snne/assess"):
        found = replies[path].json()
        check(
            described["components"]["schemas"]["Assessment"],
            found.get("snne_guard", found),
        )
