"""Loads, queries and inspects models from Python; open model first, then loading."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:  # type checkers do not run __getattr__
    from albert_tf import AlbertConfig as AlbertConfig
    from albert_tf import AlbertModel as AlbertModel
    from bert_common.errors import InputError as InputError
    from bert_tf import BertConfig as BertConfig
    from bert_tf import BertModel as BertModel
    from bert_tf import PretrainingModel as PretrainingModel
    from bert_tf import load_google_checkpoint as load_google_checkpoint
    from korean_bert.loading import load_model as load_model
    from korean_bert.model import Model as Model
    from tokenization import FullTokenizer as FullTokenizer
    from tokenization import HuggingFaceTokenizer as HuggingFaceTokenizer
    from tokenization import KoreanTokenizer as KoreanTokenizer
    from tokenization import SentencePieceTokenizer as SentencePieceTokenizer
    from tokenization import load_tokenizer as load_tokenizer
    from tokenization import save_tokenizer as save_tokenizer

__getattr__ = load_lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
