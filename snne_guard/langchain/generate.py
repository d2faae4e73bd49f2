"""A LangChain chat model as a callable from a prompt to a text."""

from __future__ import annotations

from langchain_core.messages import BaseMessage

from snne_guard.errors import ScoringError
from snne_guard.sampling.langchain_messages import read_message
from snne_guard.sampling.langchain_models import (
    Candidate,
    ChatRunnable,
    check_model,
    pin,
    resolve,
)
from snne_guard.sampling.langchain_quiet import quiet_config, quiet_context

__all__ = ["ChatGenerate"]

# What providers call the address of their server.
_SERVED = ("base_url", "openai_api_base", "anthropic_api_url", "azure_endpoint")


class ChatGenerate:
    """Asks a chat model a prompt and returns the text of its reply, reasoning aside.

    An LLM as judge, such as ``EntailmentJudge``, is asked through it. The handlers of
    the run in which that happens see nothing of it, since what is judged may be
    withheld; handlers of the model's own do.

    Args:
        model: Any chat model, also inside ``bind`` or ``with_retry``; it is never
            changed. A judge does best at ``temperature=0``.
        name: What it is called in the name of what ran; the model's own unless given.

    Attributes:
        name: The name.

    Raises:
        ConfigurationError: It is no chat model.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> generate = ChatGenerate(
        ...     FakeListChatModel(responses=["neutral"]), name="toy"
        ... )
        >>> generate("Does it follow?")
        'neutral'
    """

    def __init__(self, model: ChatRunnable, *, name: str | None = None) -> None:
        check_model(model)
        self._model = model
        self.name = name or _name_of(model)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    @property
    def cache_key(self) -> str:
        """What its replies depend on besides the prompt; no secret is in it.

        That is the models that may be asked, with their options, those of a binding
        and where they are served.
        """
        return repr([_told(one) for one in resolve(pin(self._model))])

    def __call__(self, prompt: str, /) -> str:
        """Return the text of one reply.

        Raises:
            ScoringError: What came back is no message.
            Exception: The model's own errors, unchanged.
        """
        message = quiet_context().run(self._model.invoke, prompt, quiet_config({}))
        if not isinstance(message, BaseMessage):
            msg = f"expected a message from {self.name}, got {type(message).__name__}"
            raise ScoringError(msg)
        return read_message(message).text


def _told(one: Candidate) -> tuple[str, str, list[str]]:
    kind = type(one.model)
    options = one.model._get_llm_string(**one.kwargs)  # noqa: SLF001 - what LangChain's own caches go by  # pyright: ignore[reportPrivateUsage]
    # Where it is served may be known of the environment alone.
    client = getattr(one.model, "root_client", None)
    served = [getattr(one.model, name, None) for name in _SERVED]
    served.append(getattr(client, "base_url", None))
    return f"{kind.__module__}.{kind.__qualname__}", options, [*map(str, served)]


def _name_of(model: ChatRunnable) -> str:
    first = resolve(pin(model))[0]
    return first.names({})[0] or type(first.model).__name__
