"""The front door: quick, without TensorFlow, with every name of its table."""

import importlib

import pytest

import korean_bert
from korean_bert import InputError, load_model
from tests.support.paths import printed_by

# Name -> the module that defines it.
NAMES = {
    "load_model": "korean_bert.loading",
    "Model": "korean_bert.model",
    "InputError": "bert_common.errors",
    "FullTokenizer": "tokenization.reference_api",
    "HuggingFaceTokenizer": "tokenization.huggingface.tokenizer",
    "KoreanTokenizer": "tokenization.korean",
    "SentencePieceTokenizer": "tokenization.sentencepiece",
    "load_tokenizer": "tokenization.loading",
    "save_tokenizer": "tokenization.loading",
    "BertConfig": "bert_tf.config",
    "BertModel": "bert_tf.model",
    "PretrainingModel": "bert_tf.pretraining",
    "load_google_checkpoint": "bert_tf.checkpoint",
    "AlbertConfig": "albert_tf.config",
    "AlbertModel": "albert_tf.model",
}


def test_every_name_is_its_module_s():
    assert set(korean_bert.__all__) == set(NAMES) <= set(dir(korean_bert))
    for name, module in NAMES.items():
        assert getattr(korean_bert, name) is getattr(importlib.import_module(module), name)
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
