"""What providers other than OpenAI send and expect: one ``Protocol`` each.

After their own pages: docs.anthropic.com/en/api/messages, docs.mistral.ai/api,
ai.google.dev/api/generate-content, github.com/ollama/ollama/blob/main/docs/api.md,
docs.aws.amazon.com/bedrock/latest/APIReference, docs.together.ai/reference,
docs.vllm.ai/en/latest/serving/openai_compatible_server.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.support.chat_payload import completion
from tests.support.chat_protocol import Reply, Request, Usage
from tests.support.provider_server import Protocol

__all__ = [
    "ANTHROPIC",
    "BEDROCK",
    "BEDROCK_INVOKE",
    "GOOGLE",
    "MISTRAL",
    "OLLAMA",
    "OPENAI",
    "TGI",
    "TOGETHER",
    "VLLM",
]

JSON = dict[str, Any]


def texts_of(request: Request, reply: Reply) -> list[str]:
    """Return what the choices of a reply say."""
    found: list[JSON] = completion(request, reply)["choices"]
    return [choice["message"]["content"] or "" for choice in found]


def _kept(body: Mapping[str, Any], **names: Any) -> JSON:
    """Return the options that are there, each under its name in Chat Completions."""
    return {name: body[own] for name, own in names.items() if body.get(own) is not None}


def _tokens(request: Request, reply: Reply) -> list[JSON]:
    (choice,) = completion(request, reply)["choices"]
    entries: list[JSON] = (choice["logprobs"] or {}).get("content", [])
    return entries


# --- OpenAI and those that speak nearly the same ------------------------------------

OPENAI = Protocol()


def _vllm(request: Request, reply: Reply, usage: Usage) -> JSON:
    body = completion(request, reply)
    for choice in body["choices"]:
        choice |= {"stop_reason": None, "token_ids": None}
        choice["message"] |= {"reasoning": None, "tool_calls": [], "annotations": None}
        for token in (choice["logprobs"] or {}).get("content", ()):
            token["bytes"] = list(token["token"].encode())
        if choice["logprobs"]:
            del choice["logprobs"]["refusal"]
    body["usage"] = {
        "prompt_tokens": usage.prompt,
        "total_tokens": usage.prompt + usage.completion,
        "completion_tokens": usage.completion,
        "prompt_tokens_details": None,
    }
    return {**body, "prompt_logprobs": None, "kv_transfer_params": None}


def _vllm_fault(status: int, text: str) -> JSON:
    kind = "BadRequestError" if status == 400 else "InternalServerError"
    error = {"message": text, "type": kind, "param": None, "code": status}
    return {"error": error}


VLLM = Protocol(write=_vllm, fault=_vllm_fault)


TGI = Protocol(
    # It takes n, and answers with one choice whatever it says.
    read=lambda request: {**request.body, "n": 1},
    fault=lambda _status, text: {"error": text, "error_type": "validation"},
)


def _together(request: Request, reply: Reply, _usage: Usage) -> JSON:
    body = completion(request, reply)
    for choice in body["choices"]:
        tokens = (choice["logprobs"] or {}).get("content", ())
        if tokens:
            choice["logprobs"] = {
                "token_ids": list(range(len(tokens))),
                "tokens": [token["token"] for token in tokens],
                "token_logprobs": [token["logprob"] for token in tokens],
            }
    return body


TOGETHER = Protocol(write=_together)


def _read_mistral(request: Request) -> JSON:
    return {**request.body, **_kept(request.body, seed="random_seed")}


MISTRAL = Protocol(
    read=_read_mistral,
    fault=lambda status, text: {
        "object": "error",
        "message": text,
        "type": "invalid_request_error" if status < 429 else "rate_limited",
        "param": None,
        "code": "3051",
    },
)


# --- Anthropic ----------------------------------------------------------------------


def _read_anthropic(request: Request) -> JSON:
    names = ("model", "messages", "max_tokens", "temperature", "stream", "tools")
    return _kept(request.body, **{name: name for name in names})


def _anthropic_head(request: Request, reply: Reply, usage: Usage) -> JSON:
    return {
        "id": f"msg_{request.index}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or request.body["model"],
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.prompt - usage.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.completion,
        },
    }


def _anthropic(request: Request, reply: Reply, usage: Usage) -> JSON:
    (text,) = texts_of(request, reply)
    content: list[JSON] = [
        {"type": "thinking", "thinking": thought, "signature": "c2ln"}
        for thought in reply.reasoning
    ]
    return {
        **_anthropic_head(request, reply, usage),
        "content": [*content, {"type": "text", "text": text}],
        "stop_reason": (reply.finish_reasons or ["end_turn"])[0],
    }


def _anthropic_stream(request: Request, reply: Reply, usage: Usage) -> str:
    (text,) = texts_of(request, reply)
    head = _anthropic_head(request, reply, usage)
    begun = {**head, "content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[JSON] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": part},
            }
            for part in (text[:2], text[2:])
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": ended,
            "usage": {"output_tokens": usage.completion},
        },
        {"type": "message_stop"},
    ]
    lines = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    return "".join(lines)


ANTHROPIC = Protocol(
    paths=("/v1/messages",),
    read=_read_anthropic,
    write=_anthropic,
    stream=_anthropic_stream,
    fault=lambda status, text: {
        "type": "error",
        "error": {
            "type": "rate_limit_error" if status == 429 else "invalid_request_error",
            "message": text,
        },
    },
)


# --- Google -------------------------------------------------------------------------


def _read_google(request: Request) -> JSON:
    config = request.body.get("generationConfig", {})
    messages = [
        {
            "role": content.get("role", "user"),
            "content": "".join(part.get("text", "") for part in content["parts"]),
        }
        for content in request.body["contents"]
    ]
    model = request.body.get("model") or request.path.split("/models/")[-1]
    return {
        "messages": messages,
        "model": str(model).removeprefix("models/").partition(":")[0],
        "stream": ":streamGenerateContent" in request.path,
        "tools": request.body.get("tools"),
        **_kept(
            config,
            temperature="temperature",
            n="candidateCount",
            max_tokens="maxOutputTokens",
            seed="seed",
        ),
    }


def _google(request: Request, reply: Reply, usage: Usage) -> JSON:
    reasons = reply.finish_reasons or ["STOP"]
    return {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        *({"text": t, "thought": True} for t in reply.reasoning),
                        {"text": text},
                    ],
                },
                "finishReason": reasons[index % len(reasons)],
                "index": index,
            }
            for index, text in enumerate(texts_of(request, reply))
        ],
        "usageMetadata": {
            "promptTokenCount": usage.prompt,
            "candidatesTokenCount": usage.completion,
            "totalTokenCount": usage.prompt + usage.completion,
            "cachedContentTokenCount": usage.cached,
        },
        "modelVersion": reply.model or request.body["model"],
    }


def _google_stream(request: Request, reply: Reply, usage: Usage) -> list[JSON] | str:
    whole = _google(request, reply, usage)
    return (
        f"data: {json.dumps(whole)}\r\n\r\n" if "alt=sse" in request.path else [whole]
    )


GOOGLE = Protocol(
    paths=(":generateContent", ":streamGenerateContent"),
    read=_read_google,
    write=_google,
    stream=_google_stream,
    fault=lambda status, text: {
        "error": {
            "code": status,
            "message": text,
            "status": {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(
                status, "INVALID_ARGUMENT"
            ),
        }
    },
)


# --- Ollama -------------------------------------------------------------------------


def _read_ollama(request: Request) -> JSON:
    body = request.body
    return {
        # It is always streamed by the class, in one piece here: for the tests that is
        # no stream.
        **_kept(body, model="model", messages="messages", logprobs="logprobs"),
        **_kept(
            body.get("options", {}),
            temperature="temperature",
            seed="seed",
            max_tokens="num_predict",
        ),
    }


def _ollama(request: Request, reply: Reply, usage: Usage) -> str:
    (text,) = texts_of(request, reply)
    head = {
        "model": reply.model or request.body["model"],
        "created_at": "2026-11-21T00:00:00Z",
    }
    message = {"role": "assistant", "content": text}
    said: JSON = {**head, "message": message, "done": False}
    entries = [
        {"token": token["token"], "logprob": token["logprob"]}
        for token in _tokens(request, reply)
    ]
    if entries:
        said["logprobs"] = entries
    ended = {
        **head,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": (reply.finish_reasons or ["stop"])[0],
        "total_duration": 5,
        "prompt_eval_count": usage.prompt,
        "eval_count": usage.completion,
    }
    return "".join(f"{json.dumps(line)}\n" for line in (said, ended))


OLLAMA = Protocol(
    paths=("/api/chat",),
    read=_read_ollama,
    write=_ollama,
    fault=lambda _status, text: {"error": text},
)


# --- Amazon Bedrock -----------------------------------------------------------------


def _read_bedrock(request: Request) -> JSON:
    messages = [
        {
            "role": message["role"],
            "content": "".join(part.get("text", "") for part in message["content"]),
        }
        for message in request.body["messages"]
    ]
    return {
        "messages": messages,
        "model": request.path.split("/model/")[-1].removesuffix("/converse"),
        "tools": request.body.get("toolConfig", {}).get("tools"),
        **_kept(
            request.body.get("inferenceConfig", {}),
            temperature="temperature",
            max_tokens="maxTokens",
        ),
    }


def _bedrock(request: Request, reply: Reply, usage: Usage) -> JSON:
    (text,) = texts_of(request, reply)
    content: list[JSON] = [
        {"reasoningContent": {"reasoningText": {"text": thought, "signature": "s"}}}
        for thought in reply.reasoning
    ]
    message = {"role": "assistant", "content": [*content, {"text": text}]}
    return {
        "output": {"message": message},
        "stopReason": (reply.finish_reasons or ["end_turn"])[0],
        "usage": {
            "inputTokens": usage.prompt - usage.cached,
            "cacheReadInputTokens": usage.cached,
            "outputTokens": usage.completion,
            "totalTokens": usage.prompt + usage.completion,
        },
        "metrics": {"latencyMs": 1},
    }


BEDROCK = Protocol(
    paths=("/converse",),
    read=_read_bedrock,
    write=_bedrock,
    fault=lambda _status, text: {"message": text},
)


BEDROCK_INVOKE = replace(
    ANTHROPIC,
    paths=("/invoke",),
    read=lambda request: {
        **_read_anthropic(request),
        "model": request.path.split("/model/")[-1].removesuffix("/invoke"),
    },
    fault=BEDROCK.fault,
    counted=lambda usage: {
        "X-Amzn-Bedrock-Input-Token-Count": str(usage.prompt),
        "X-Amzn-Bedrock-Output-Token-Count": str(usage.completion),
    },
)
"""In the words of the model's maker, here Anthropic's."""
