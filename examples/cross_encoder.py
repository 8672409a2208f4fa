"""Web tools that choose the parts of pages with a cross-encoder, in the place of BM25:

    pip install onnxruntime tokenizers
    CROSS_ENCODER=FOLDER babyagi run "When is it open?" --tools-from examples/cross_encoder.py

FOLDER has `model.onnx` and `tokenizer.json`, as sentence-transformers exports a cross-encoder. The
model reads the question together with each part.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from babyagi.app.toolbox import open_tool_context
from babyagi.retrieval.rank import rank
from babyagi.settings.load import load_here
from babyagi.tools.catalog import open_tools

MAX_READ = 64  # how many texts the model reads for one question: those that BM25 ranks first
MAX_PAIR_TOKENS = 512


class CrossEncoder:
    """A `Ranker`: the softmax of the model's logits is the share of each text."""

    def __init__(self, folder):
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_PAIR_TOKENS, strategy="only_second")
        self._tokenizer.enable_padding()

    def score(self, question, texts):
        first = [one.index for one in rank(question, texts)]
        chosen = list(dict.fromkeys([*first, *range(len(texts))]))[:MAX_READ]
        scores = [0.0] * len(texts)
        if chosen and question.strip():
            logits = self._read([(question, texts[index]) for index in chosen])
            for index, share in zip(chosen, np.exp(logits - logits.max()), strict=True):
                scores[index] = float(share)
        return scores

    def _read(self, pairs):
        read = self._tokenizer.encode_batch(pairs)
        rows = {
            "input_ids": [one.ids for one in read],
            "attention_mask": [one.attention_mask for one in read],
            "token_type_ids": [one.type_ids for one in read],
        }
        names = [one.name for one in self._session.get_inputs()]
        given = {name: np.array(rows[name], dtype=np.int64) for name in names}
        logits = np.asarray(self._session.run(None, given)[0]).reshape(len(read), -1)
        # of two logits the second means "relevant"
        return logits[:, -1] - (logits[:, 0] if logits.shape[1] == 2 else 0.0)


settings = load_here({})
context = open_tool_context(settings, None, pages=settings.home / "pages")
ranker = CrossEncoder(Path(os.environ["CROSS_ENCODER"]))
tools = open_tools(("web_search", "open_page"), replace(context, ranker=ranker))
search, page = (replace(tool, name=f"ranked_{tool.name}") for tool in tools)
