"""One reply as it is drawn, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING

from snne_guard.sampling.huggingface.loading import Loaded, eos_ids
from snne_guard.sampling.huggingface.prompts import Prompt
from snne_guard.sampling.huggingface.settings import Completion, GenerationSettings
from snne_guard.sampling.huggingface.text import ReplyText

if TYPE_CHECKING:
    from snne_guard.sampling.huggingface.model import HuggingFaceModel

__all__ = ["stream"]


def stream(
    local: HuggingFaceModel, prompt: Prompt, settings: GenerationSettings
) -> Iterator[str | Completion]:
    """Yield parts of the text as they become certain, then the whole reply.

    Closing the iterator ends the draw at its next token.
    """
    arrived: SimpleQueue[int | Completion | BaseException] = SimpleQueue()
    cancelled = Event()

    def draw() -> None:
        try:
            ((reply,),) = local.generate(
                [prompt], settings=settings, on_token=arrived.put, cancelled=cancelled
            )
            arrived.put(reply)
        except BaseException as error:  # noqa: BLE001 - raised where it is read
            arrived.put(error)

    ends = eos_ids(Loaded(local.model, local.tokenizer))
    text, sent = ReplyText(local.tokenizer, settings.stop), 0
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
