"""LangChain's BabyAGI chain on the objective in the environment; run by a Python that has
langchain-experimental and langchain-openai."""

from __future__ import annotations

import os


def main() -> None:
    from langchain_community.docstore import InMemoryDocstore  # type: ignore[import-not-found]
    from langchain_community.vectorstores import FAISS  # type: ignore[import-not-found]
    from langchain_experimental.autonomous_agents import BabyAGI  # type: ignore[import-not-found]
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # type: ignore[import-not-found]
    import faiss  # type: ignore[import-not-found]  # isort: skip

    embeddings = OpenAIEmbeddings(check_embedding_ctx_length=False)
    store = FAISS(embeddings.embed_query, faiss.IndexFlatL2(1536), InMemoryDocstore({}), {})
    chain = BabyAGI.from_llm(
        llm=ChatOpenAI(model="simulated", temperature=0), vectorstore=store, max_iterations=None
    )
    chain.invoke({"objective": os.environ["OBJECTIVE"], "first_task": os.environ["INITIAL_TASK"]})


main()
