"""Questions about documents: retrieval runs once, and what it finds supports answers.

python examples/rag.py
"""

from __future__ import annotations

import re
import zlib

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model

TEXTS = {
    "library.txt": "The town library opens at 9 and closes at 17.",
    "pool.txt": "The swimming pool is closed for repairs until May.",
    "market.txt": "The farmers' market takes place every Saturday.",
}


class WordCounts(Embeddings):
    """A text as counts of its words: enough for three documents, needs no model."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [0.0] * 512
        for word in re.findall(r"\w+", text.lower()):
            counts[zlib.crc32(word.encode()) % 512] += 1.0
        return counts


store = InMemoryVectorStore.from_texts(
    list(TEXTS.values()), WordCounts(), [{"source": name} for name in TEXTS]
)
searches: list[str] = []


def retrieve(inputs: dict[str, str]) -> list[Document]:
    searches.append(inputs["question"])
    return store.similarity_search(inputs["question"], k=1)


def read(inputs: dict[str, list[Document]]) -> str:
    return "\n".join(document.page_content for document in inputs["sources"])


# The context is in the system message, so the user's message is the question alone,
# which is what the guard takes it for.
prompt = ChatPromptTemplate.from_messages(
    [("system", "Answer in one short sentence. {context}"), ("user", "{question}")]
)
model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
guard = SNNEGuard(
    model,
    threshold=0.5,
    min_grounded=0.3,
    context=lambda messages: messages[0].text.partition("sentence. ")[2],
)

chain = RunnablePassthrough.assign(sources=retrieve) | RunnablePassthrough.assign(
    answer=RunnablePassthrough.assign(context=read) | prompt | guard
)

result = chain.invoke({"question": "When does the town library open?"})
record = result["answer"].response_metadata["snne_guard"]
print("answer:", result["answer"].text)
print("sources:", ", ".join(source.metadata["source"] for source in result["sources"]))
print("searches:", len(searches))
print("replies compared:", record["n_used"])
print("grounded:", record["grounded"])
print("decision:", record["decision"])
