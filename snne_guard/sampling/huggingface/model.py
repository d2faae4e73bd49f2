"""A causal language model of Hugging Face in this process; no framework is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface.loading import (
    Model,
    Tokenizer,
    check_extra,
    check_model,
    eos_ids,
    load,
    out_of_pipeline,
    window_of,
)
from snne_guard.sampling.huggingface.settings import (
    Completion,
    GenerationSettings,
    check_whole,
)
from snne_guard.sampling.huggingface.text import Prompt, ReplyText, encode

__all__ = ["HuggingFaceModel"]

_PLAIN = GenerationSettings()


class HuggingFaceModel:
    """A loaded causal language model from which many replies are drawn at once.

    All replies to a prompt share one prefill, and several prompts share a batch. Calls
    from several threads wait for one another. The model is used as it is handed in and
    never changed. Tokens are drawn with torch's generators; a seed puts these back to
    where they were, and holds where no other thread draws from them meanwhile.

    Args:
        model: A causal language model of ``transformers``, or of PEFT around one, in
            evaluation mode; its device, precision and quantisation are its own.
        tokenizer: Its tokenizer.
        name: Its name in records; where it was loaded from unless given.
        chat_template: Jinja template used in place of the tokenizer's own. With ``""``
            messages are plain text that the model continues.
        max_batch_size: Most replies that are drawn together; fewer need less memory.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        ConfigurationError: If replies cannot be drawn from the model as it is.

    Example:
        >>> model = HuggingFaceModel.from_pretrained(  # doctest: +SKIP
        ...     "meta-llama/Llama-3.1-8B-Instruct"
        ... )
        >>> question = [{"role": "user", "content": "Who wrote Faust?"}]
        >>> [replies] = model.generate([question], n=10)  # doctest: +SKIP
        >>> replies[0].text, replies[0].token_logprobs  # doctest: +SKIP
        ('Goethe wrote it.', (-0.31, -0.02, -0.11, -0.01, -0.0))
    """

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        *,
        name: str | None = None,
        chat_template: str | None = None,
        max_batch_size: int = 64,
    ) -> None:
        check_extra()
        check_model(model)
        check_whole("max_batch_size", max_batch_size, least=1)
        self.name = name or str(model.config.name_or_path or type(model).__name__)
        self.model = model
        self.tokenizer = tokenizer
        self._chat_template = chat_template
        self._max_batch_size = max_batch_size
        self._lock = Lock()

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        *,
        device: str | None = None,
        dtype: Any = None,  # noqa: ANN401 - a torch.dtype or its name
        trust_remote_code: bool = False,
        chat_template: str | None = None,
        max_batch_size: int = 64,
        **options: Any,  # noqa: ANN401 - those of transformers
    ) -> HuggingFaceModel:
        """Load a model from the Hugging Face Hub or from a folder.

        Args:
            name: Such as ``"meta-llama/Llama-3.1-8B-Instruct"``, or a path.
            device: Such as ``"cuda:1"``; a GPU if there is one unless given.
            dtype: A ``torch.dtype``, its name, or ``"auto"``. bfloat16 on a GPU and
                float32 on a CPU unless given.
            trust_remote_code: Whether code that comes with the model may run here.
            chat_template: As for the class.
            max_batch_size: As for the class.
            **options: Further ones of ``AutoModelForCausalLM.from_pretrained``, such
                as ``revision``, ``device_map`` or ``quantization_config``.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If options contradict one another.
            OSError: If there is no such model, from ``transformers``.
        """
        check_extra()
        model, tokenizer = load(
            name,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            options=options,
        )
        return cls(
            model,
            tokenizer,
            name=name,
            chat_template=chat_template,
            max_batch_size=max_batch_size,
        )

    @classmethod
    def from_pipeline(
        cls, pipeline: object, *, max_batch_size: int = 64
    ) -> HuggingFaceModel:
        """Return the model in what is loaded already; nothing is loaded again.

        Args:
            pipeline: A text-generation pipeline of ``transformers``, a
                ``HuggingFacePipeline`` around one, or a ``ChatHuggingFace`` around
                that. Only its model and tokenizer are used, none of its settings.
            max_batch_size: As for the class.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If there is no local model in it.
        """
        check_extra()
        return cls(*out_of_pipeline(pipeline), max_batch_size=max_batch_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        settings: GenerationSettings = _PLAIN,
        on_token: Callable[[int], None] | None = None,
        cancelled: Event | None = None,
    ) -> list[tuple[Completion, ...]]:
        """Draw ``n`` replies to each prompt.

        Args:
            prompts: Each a list of messages, which go through the chat template, or a
                text, which the model continues.
            n: Replies to each of them.
            settings: How they are drawn.
            on_token: Called with each drawn token, for one prompt with ``n=1``.
            cancelled: Once set, the draw ends at the next token; what is returned then
                means nothing.

        Returns:
            For each prompt its ``n`` replies.

        Raises:
            ConfigurationError: If a setting makes no sense for this model.
            InputError: If a prompt is empty, too long, or refused by the template.
            torch.OutOfMemoryError: If the replies to draw do not fit into memory; a
                smaller ``max_batch_size`` helps.
        """
        from snne_guard.sampling.huggingface.generate import generate

        self._check(n, settings)
        encoded = [self._encode(prompt) for prompt in prompts]
        if on_token is not None and (n, len(encoded)) != (1, 1):
            msg = f"on_token hears one reply; got n={n} for {len(encoded)} prompts"
            raise ConfigurationError(msg)
        with self._lock:
            return generate(
                self.model,
                self.tokenizer,
                encoded,
                n=n,
                settings=settings,
                max_batch_size=self._max_batch_size,
                on_token=on_token,
                cancelled=cancelled,
            )

    def stream(
        self, prompt: Prompt, *, settings: GenerationSettings = _PLAIN
    ) -> Iterator[str | Completion]:
        """Draw one reply and yield its text as it comes, then the whole reply.

        Closing the iterator ends the draw at its next token.

        Raises:
            ConfigurationError: As for ``generate``.
            InputError: As for ``generate``.
        """
        arrived: SimpleQueue[int | Completion | BaseException] = SimpleQueue()
        cancelled = Event()

        def draw() -> None:
            try:
                ((reply,),) = self.generate(
                    [prompt],
                    settings=settings,
                    on_token=arrived.put,
                    cancelled=cancelled,
                )
                arrived.put(reply)
            except BaseException as error:  # noqa: BLE001 - raised where it is read
                arrived.put(error)

        ends = eos_ids(self.model, self.tokenizer)
        text, sent = ReplyText(self.tokenizer, settings.stop), 0
        Thread(target=draw, name="snne-guard-stream", daemon=True).start()
        try:
            while not isinstance(item := arrived.get(), Completion):
                if isinstance(item, BaseException):
                    raise item
                if item not in ends:
                    text.push(item)
                if text.certain > sent:
                    yield text.text[sent : text.certain]
                    sent = text.certain
            if len(item.text) > sent:
                yield item.text[sent:]
            yield item
        finally:
            cancelled.set()

    def token_logprobs(self, prompt: str, continuation: str, /) -> tuple[float, ...]:
        """Return the natural log-probability of each token of a continuation.

        The prompt is plain text, without a chat template around it, as pTrue has it.

        Args:
            prompt: Text that the model has read before.
            continuation: Text of at least one token, which begins where a token does:
                ``" A"`` after ``"is:"``, and not ``"nd"`` after ``"a"``.

        Raises:
            InputError: The prompt or the continuation has no tokens, the continuation
                does not begin where a token does, or both are too long for the model.
        """
        from snne_guard.sampling.huggingface.forward import token_logprobs

        with self._lock:
            return token_logprobs(self.model, self.tokenizer, prompt, continuation)

    def likelihood(self, prompt: str, continuation: str, /) -> float:
        """Return the natural log-probability of a continuation, all its tokens.

        Raises:
            InputError: As for ``token_logprobs``.
        """
        return math.fsum(self.token_logprobs(prompt, continuation))

    def _encode(self, prompt: Prompt) -> tuple[int, ...]:
        ids = encode(self.tokenizer, prompt, chat_template=self._chat_template)
        window = window_of(self.model)
        if window is not None and len(ids) >= window:
            msg = (
                f"the prompt has {len(ids)} tokens; {self.name} has a context window "
                f"of {window} tokens for prompt and reply"
            )
            raise InputError(msg)
        return ids

    def _check(self, n: int, settings: GenerationSettings) -> None:
        check_whole("n", n, least=1)
        layer = settings.hidden_layer
        layers = int(self.model.config.get_text_config().num_hidden_layers)
        if layer is not None and not -layers - 1 <= layer <= layers:
            msg = (
                f"hidden_layer must be from {-layers - 1} to {layers} for a model of "
                f"{layers} layers; got {layer}"
            )
            raise ConfigurationError(msg)
