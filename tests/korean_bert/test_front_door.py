"""The front door: quick, without TensorFlow, with every name of its table."""

import pytest

import korean_bert
from korean_bert import InputError, load_model
from tests.support.paths import printed_by

NAMES = [
    "load_model", "Model", "InputError", "FullTokenizer", "HuggingFaceTokenizer", "KoreanTokenizer",
    "SentencePieceTokenizer", "load_tokenizer", "save_tokenizer", "BertConfig", "BertModel",
    "PretrainingModel", "load_google_checkpoint", "AlbertConfig", "AlbertModel",
]  # fmt: skip


def test_every_name_is_there():
    assert set(korean_bert.__all__) == set(NAMES) <= set(dir(korean_bert))
    assert [getattr(korean_bert, name).__name__ for name in NAMES] == NAMES
    with pytest.raises(AttributeError, match="no attribute 'load_models'"):
        korean_bert.load_models  # noqa: B018


IMPORT = """
import time
start = time.perf_counter()
import korean_bert
print(time.perf_counter() - start, "tensorflow" in __import__("sys").modules)
"""


def test_the_import_is_quick():
    seconds, tensorflow = printed_by("-c", IMPORT).split()
    assert float(seconds) < 0.2 and tensorflow == "False"


def test_what_is_no_model(tmp_path):
    with pytest.raises(InputError, match="a model's folder must hold bert_config.json"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="Received: .*nowhere, nothing there"):
        load_model(tmp_path / "nowhere")
