"""Loads a model from any kind of folder or checkpoint that the programs read."""

import os
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.import_tensorflow import import_tensorflow
from korean_bert.arguments import shown
from model_formats.folder_weights import HUB_VARIABLES
from model_formats.model_folder import REFERENCE_MODEL, SHIPPED_MODELS, ModelFolder
from model_formats.weights import find_weights
from tokenization import load_tokenizer
from tokenization.base import TokenizerInterface
from tokenization.loading import Tokenizer

if TYPE_CHECKING:
    from korean_bert.model import Model


def load_model(
    directory: str | os.PathLike[str] | None = None,
    *,
    tokenizer: Tokenizer | str | os.PathLike[str] | None = None,
) -> "Model":
    """Loads a model, pre-trained or fine-tuned, with its tokenizer.

    Args:
        directory: a folder that this project wrote, or an unpacked model released by Google, on
            TensorFlow Hub, in the Model Garden or for transformers; or a checkpoint or
            safetensors file in such a folder. None: "reference_model", the model that comes with
            this project; "reference_vectors" is its variant for `embed`, `similarity` and
            `search`. Both names work in any working directory.
        tokenizer: the tokenizer or the folder that describes it, if the model's folder has none.
            None: the one in the model's folder.

    Returns:
        A `korean_bert.model.Model`.

    Raises:
        InputError: there is no model, or its files contradict each other; the message says what
            must hold and what was received.

    Example:
        model = load_model("output/model")
        model.fill_mask("나는 학교[MASK] 갔다.")
    """
    if not isinstance(directory, str | os.PathLike | None) or directory == "":
        raise InputError(f"a model's folder must be a path. Received: {shown(directory)}")
    is_given = tokenizer is None or isinstance(tokenizer, TokenizerInterface)
    if not is_given and (not isinstance(tokenizer, str | os.PathLike) or tokenizer == ""):
        raise InputError(f"tokenizer must be a tokenizer or a path. Received: {shown(tokenizer)}")
    # Before anything else imports TensorFlow, to hide its first messages.
    import_tensorflow()
    from korean_bert.model import Model
    from model_formats.load_folder import load

    path = REFERENCE_MODEL if directory is None else os.path.expanduser(directory)
    if not os.path.exists(path):
        path = SHIPPED_MODELS.get(os.fspath(path), path)
    folder = open_folder(path)
    if isinstance(tokenizer, str | os.PathLike):
        tokenizer = load_tokenizer(tokenizer)
    return Model(load(folder, tokenizer))


def open_folder(path: str) -> ModelFolder:
    """Opens a model's folder, or the folder of a checkpoint, as a `ModelFolder`."""
    what = "a model's folder"
    if os.path.isdir(path) and not ModelFolder(path).is_inside_another:
        return ModelFolder.open(path, what=what)
    checkpoint = find_weights(path)
    folder = ModelFolder.beside(checkpoint).path
    if os.path.basename(folder) == HUB_VARIABLES:
        folder = os.path.dirname(folder)
    return ModelFolder.open(folder, checkpoint, what=what)
