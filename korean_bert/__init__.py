"""The front door in Python: load a model, ask it, look into it; open model first, then loading."""

import importlib

from bert_common.startup import check_packages

# Loaded when first used, so that `import korean_bert` imports neither TensorFlow nor NumPy.
_HOMES = {
    "load_model": "korean_bert.loading",
    "Model": "korean_bert.model",
    "InputError": "bert_common.errors",
    **dict.fromkeys(
        (
            "FullTokenizer",
            "HuggingFaceTokenizer",
            "KoreanTokenizer",
            "SentencePieceTokenizer",
            "load_tokenizer",
            "save_tokenizer",
        ),
        "tokenization",
    ),
    **dict.fromkeys(
        ("BertConfig", "BertModel", "PretrainingModel", "load_google_checkpoint"), "bert_tf"
    ),
    **dict.fromkeys(("AlbertConfig", "AlbertModel"), "albert_tf"),
}

__all__ = list(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'korean_bert' has no attribute {name!r}")
    check_packages()
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return sorted({*globals(), *__all__})
