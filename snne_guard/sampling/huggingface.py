"""A causal language model of Hugging Face on this machine, and what is drawn from it.

No framework is needed for it; ``TransformersChatModel`` is LangChain's side.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.hf_load import (
    Loaded,
    arguments_of,
    check_extra,
    check_model,
    defaults_of,
    ends_of,
    held,
    layers_of,
    load,
    window_of,
)
from snne_guard.sampling.hf_prompts import Message, Prompt, encode
from snne_guard.sampling.hf_rows import Job, Listener
from snne_guard.sampling.hf_settings import (
    Completion,
    GenerationSettings,
    Token,
    check_whole,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

    from snne_guard.sampling.hf_queue import BatchQueue

__all__ = [
    "Completion",
    "GenerationSettings",
    "HuggingFaceModel",
    "Message",
    "Prompt",
    "Token",
]

_PLAIN = GenerationSettings()
_lock = threading.Lock()
_queues: WeakValueDictionary[tuple[int, int, int], BatchQueue] = WeakValueDictionary()


class HuggingFaceModel:
    """A loaded causal language model from which many replies are drawn at once.

    All replies to a prompt share one prefill, many prompts share a batch, and who asks
    from several threads or tasks at the same time shares it too. The model is used as
    it is handed in and never changed; ``device_map``, quantisation and PEFT adapters
    are its own affair.

    Args:
        model: A causal language model of ``transformers``, or of PEFT around one, in
            evaluation mode.
        tokenizer: Its tokenizer.
        name: What it is called in records; where it was loaded from unless given.
        chat_template: Jinja template used instead of the tokenizer's own; with ``""``
            messages are plain text that the model goes on with.
        max_batch_size: Replies that are drawn together at most. Where they do not fit
            into memory, the batch is halved.

    Raises:
        MissingExtraError: If torch or transformers is not installed.
        ConfigurationError: If the model is none that can be drawn from as it is.

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
        model: Any,  # noqa: ANN401 - transformers has no types
        tokenizer: Any,  # noqa: ANN401 - transformers has no types
        *,
        name: str | None = None,
        chat_template: str | None = None,
        max_batch_size: int = 64,
    ) -> None:
        check_extra()
        check_model(model)
        check_whole("max_batch_size", max_batch_size, least=1)
        loaded = Loaded(model, tokenizer)
        self._loaded = loaded
        self._name = name or str(model.config.name_or_path or type(model).__name__)
        self._chat_template = chat_template
        self._window = window_of(model)
        self._queue = _queue(loaded, max_batch_size)

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
        """Load a model from the Hugging Face Hub, or from a folder.

        Args:
            name: Such as ``"meta-llama/Llama-3.1-8B-Instruct"``, or a path.
            device: Such as ``"cuda:1"``; a GPU if there is one unless given.
            dtype: A ``torch.dtype``, its name, or ``"auto"``. bfloat16 on a GPU and
                float32 on a CPU unless given.
            trust_remote_code: Whether code that comes with the model may run here.
            chat_template: Jinja template used instead of the tokenizer's own; with
                ``""`` messages are plain text that the model goes on with.
            max_batch_size: Replies that are drawn together at most.
            **options: Any of ``AutoModelForCausalLM.from_pretrained``, such as
                ``revision``, ``device_map`` or ``quantization_config``.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If options contradict one another.
            OSError: If there is no such model, from ``transformers``.
        """
        check_extra()
        loaded = load(
            name,
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            options=options,
        )
        return cls(
            *loaded,
            name=name,
            chat_template=chat_template,
            max_batch_size=max_batch_size,
        )

    @classmethod
    def of(cls, thing: object, *, max_batch_size: int = 64) -> HuggingFaceModel:
        """Return the model in what is loaded already; nothing is loaded again.

        Args:
            thing: A text-generation pipeline of ``transformers``, a
                ``HuggingFacePipeline`` on one, or a ``ChatHuggingFace`` on that.
            max_batch_size: Replies that are drawn together at most.

        Raises:
            MissingExtraError: If torch or transformers is not installed.
            ConfigurationError: If there is no local model in it.
        """
        if isinstance(thing, HuggingFaceModel):
            return thing
        check_extra()
        return cls(*held(thing), max_batch_size=max_batch_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"

    @property
    def name(self) -> str:
        """What it is called in records."""
        return self._name

    @property
    def model(self) -> Any:  # noqa: ANN401 - transformers has no types
        """The model of ``transformers`` inside."""
        return self._loaded.model

    @property
    def tokenizer(self) -> Any:  # noqa: ANN401 - transformers has no types
        """Its tokenizer."""
        return self._loaded.tokenizer

    @property
    def defaults(self) -> GenerationSettings:
        """The settings that the model's authors recommend for answers.

        Temperature, top-k and top-p of its ``generation_config``, or temperature 0
        where that does not sample. Samples are drawn without them.
        """
        return defaults_of(self._loaded.model)

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        settings: GenerationSettings = _PLAIN,
    ) -> list[tuple[Completion, ...]]:
        """Draw ``n`` replies to each prompt.

        Args:
            prompts: Each a list of messages, which go through the chat template, or a
                text, with which the model goes on as it is.
            n: Replies to each of them.
            settings: How they are drawn.

        Returns:
            For each prompt its ``n`` replies.

        Raises:
            ConfigurationError: If a setting makes no sense for this model.
            InputError: If a prompt is empty, too long, or refused by the template.
            torch.OutOfMemoryError: If the memory does not suffice for a single reply.
        """
        futures = self._submit([self._job(each, n, settings) for each in prompts])
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    async def agenerate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        settings: GenerationSettings = _PLAIN,
    ) -> list[tuple[Completion, ...]]:
        """Do what ``generate`` does without blocking the event loop."""
        jobs = [
            await asyncio.to_thread(self._job, each, n, settings) for each in prompts
        ]
        futures = self._submit(jobs)
        try:
            return await asyncio.gather(*map(asyncio.wrap_future, futures))
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def submit(
        self,
        prompt: Prompt,
        *,
        n: int = 1,
        settings: GenerationSettings = _PLAIN,
        listener: Listener | None = None,
    ) -> Future[tuple[Completion, ...]]:
        """Ask for replies without waiting for them.

        Args:
            prompt: As for ``generate``.
            n: How many replies.
            settings: How they are drawn.
            listener: Told of the tokens of a single reply as they become certain, in
                the thread that draws, so it must be quick; what it raises ends the
                request. Only with ``n=1``.

        Returns:
            A future of the replies. Cancelling it drops the request.

        Raises:
            ConfigurationError: If a setting makes no sense for this model.
            InputError: If the prompt is empty, too long, or refused by the template.
        """
        (future,) = self._submit([self._job(prompt, n, settings, listener)])
        return future

    async def asubmit(
        self,
        prompt: Prompt,
        *,
        n: int = 1,
        settings: GenerationSettings = _PLAIN,
        listener: Listener | None = None,
    ) -> Future[tuple[Completion, ...]]:
        """Do what ``submit`` does without reading the prompt on the event loop."""
        job = await asyncio.to_thread(self._job, prompt, n, settings, listener)
        (future,) = self._submit([job])
        return future

    def _submit(self, jobs: Sequence[Job]) -> list[Future[tuple[Completion, ...]]]:
        self._queue.submit(jobs)
        return [job.future for job in jobs]

    def _job(
        self,
        prompt: Prompt,
        n: int,
        settings: GenerationSettings,
        listener: Listener | None = None,
    ) -> Job:
        self._check(n, settings)
        if listener is not None and n != 1:
            msg = f"a listener hears one reply; got n={n}"
            raise ConfigurationError(msg)
        tokens = encode(
            self._loaded.tokenizer, prompt, chat_template=self._chat_template
        )
        room = settings.max_tokens
        if self._window is not None:
            room = min(room, self._window - len(tokens))
        if room < 1:
            msg = (
                f"the prompt has {len(tokens)} tokens; {self._name} has a context "
                f"window of {self._window} tokens for prompt and reply"
            )
            raise InputError(msg)
        return Job(prompt=tokens, n=n, settings=settings, room=room, listener=listener)

    def _check(self, n: int, settings: GenerationSettings) -> None:
        check_whole("n", n, least=1)
        layer = settings.hidden_layer
        if layer is None:
            return
        layers = layers_of(self._loaded.model)
        if not -layers - 1 <= layer <= layers:
            msg = (
                f"hidden_layer must be from {-layers - 1} to {layers} for a model of "
                f"{layers} layers; got {layer}"
            )
            raise ConfigurationError(msg)


def _queue(loaded: Loaded, max_batch_size: int) -> BatchQueue:
    """Return the queue before these weights, one for all who use them alike."""
    from snne_guard.sampling.hf_decode import Weights
    from snne_guard.sampling.hf_queue import BatchQueue

    # The queue keeps both objects alive, so that no other one gets their ids.
    key = id(loaded.model), id(loaded.tokenizer), max_batch_size
    with _lock:
        queue = _queues.get(key)
        if queue is None:
            weights = Weights(
                model=loaded.model,
                ends=ends_of(loaded),
                accepts=arguments_of(loaded.model),
                padding=loaded.tokenizer.pad_token_id or 0,
            )
            queue = BatchQueue(weights, loaded.tokenizer, max_batch_size=max_batch_size)
            _queues[key] = queue
        return queue
