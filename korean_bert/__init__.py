"""The front door in Python: load a model, ask it, look into it; open model first, then loading."""

from bert_common.lazy_names import load_lazily

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

__getattr__ = load_lazily(__name__, _HOMES)


def __dir__():
    return sorted({*globals(), *__all__})
