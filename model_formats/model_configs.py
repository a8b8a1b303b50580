"""Reads a model's configuration, whichever project wrote the file."""

from albert_tf.config import AlbertConfig
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.config import BertConfig, is_of_transformers
from model_formats.huggingface.config import from_huggingface

CONFIGS = {"bert": BertConfig, "albert": AlbertConfig}


def read_model_config(path, model_type, vocab_size=None):
    """Reads a bert_config.json or an albert_config.json, or a config.json of transformers.

    The two differ in what hidden_act means, so the file is recognised by its keys.

    Args:
        path: the file.
        model_type: "bert" or "albert".
        vocab_size: the value where the file leaves it out; None: it must not.

    Returns:
        A `BertConfig` or an `AlbertConfig`.

    Raises:
        InputError: the file cannot be read, or holds another kind of model.
    """
    try:
        values = read_json(read_bytes(path), path)
    except InputError:
        values = None  # the class says what is wrong
    if not isinstance(values, dict) or not is_of_transformers(values):
        if vocab_size is not None and isinstance(values, dict) and "vocab_size" not in values:
            try:
                return CONFIGS[model_type].from_dict({**values, "vocab_size": vocab_size})
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
        return CONFIGS[model_type].from_json_file(path)
    model = from_huggingface(values, path, expected=model_type)
    if model.model_type != model_type:
        raise InputError(
            f"{path} must describe a model of --{model_type}_config_file's kind. Received: "
            f"{model.kind}, which is --{model.model_type}_config_file here"
        )
    return model.config
