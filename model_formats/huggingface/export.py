"""Exports a folder that Hugging Face's transformers loads with from_pretrained."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from bert_common.progress import progress
from bert_tf.checkpoint import google_name, google_variables, part_names
from finetuning.serving.signatures import longest_row
from finetuning.tasks import TASKS, TransformersClass
from model_formats.huggingface.architectures import (
    ENCODER,
    OTHER_FORMATS,
    choose_architecture,
    class_name,
    label_keys,
)
from model_formats.huggingface.card import make_card
from model_formats.huggingface.tokenizer_files import trust_argument, write_tokenizer
from model_formats.load_folder import load_folder
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.check import check_file
from model_formats.runtimes.ids_graph import input_names, make_graph
from model_formats.training_record import write_stages, write_trained_positions
from model_formats.transformers_files.config import CONFIG_FILE, to_huggingface
from model_formats.transformers_files.electra_classifier import as_two_layers
from model_formats.transformers_files.names import inverted
from model_formats.transformers_files.safetensors_files import INDEX_FILE, WEIGHTS_FILE, save_file
from model_formats.transformers_files.sentence_modules import (
    SentenceModules,
    write_sentence_modules,
)
from model_formats.transformers_files.task_settings import (
    SETTINGS_KEY,
    SIZES_KEY,
    settings_to_export,
)
from model_formats.weights import as_float16


def export(
    loaded: LoadedModel,
    directory: str,
    max_shard_size: int | None = None,
    precision: str = "float32",
    card_text: str = "",
) -> str:
    """Writes weights, configuration, tokenizer, model card and the records of the training.

    Args:
        max_shard_size: the maximum size of a weight file in bytes; None for one file.
        precision: the precision of the stored weights: "float32", or "float16", which halves the
            files. The loaded model computes in float32 either way.
        card_text: Markdown for the model card; see `make_card`.

    Raises:
        InputError: transformers has no class for the model, or float16 is not precise enough.
    """
    architecture = choose_architecture(loaded)
    arrays = named_arrays(loaded, architecture)
    if precision == "float16":
        arrays = as_float16(arrays)
    write_weights(directory, arrays, max_shard_size)
    write_json(os.path.join(directory, CONFIG_FILE), config_of(loaded, architecture))
    tokenization = "the folder that it was exported from holds no tokenizer"
    if loaded.tokenizer is not None:
        length = loaded.config.max_position_embeddings
        tokenization = write_tokenizer(loaded.tokenizer, directory, length)
    with atomic_write(os.path.join(directory, "README.md")) as file:
        file.write(make_card(loaded, architecture, tokenization, card_text).encode("utf-8"))
    if architecture.makes_vectors:
        pooling, normalize = (loaded.settings[name] for name in ("pooling", "normalize"))
        modules = SentenceModules(pooling, normalize, longest_row(loaded))
        write_sentence_modules(directory, modules, loaded.config.hidden_size)
    write_trained_positions(directory, loaded.trained_positions)
    write_stages(directory, loaded.stages)
    if precision == "float16":
        check_reloaded(loaded, directory)
    name = class_name(loaded, architecture)
    way = f"transformers.{name}.from_pretrained('{{folder}}')"
    if architecture.makes_vectors:
        trust = trust_argument(loaded.tokenizer)
        way = f"sentence_transformers.SentenceTransformer('{{folder}}'{trust})"
    return f"{way}; {tokenization}"


def named_arrays(loaded: LoadedModel, architecture: TransformersClass) -> dict[str, np.ndarray]:
    """Returns the weights as transformers saves them, with tied weights only once."""
    encoder, arrays = loaded.encoder, {}
    table, left_out = inverted(encoder.names), part_names(loaded.model, *architecture.without)
    prefix = f"{encoder.prefix.lower()}." if architecture.suffix == ENCODER.suffix else ""
    for google, variable in google_variables(loaded.model).items():
        if google in (*loaded.missing, *left_out):
            continue
        name = google_name(google, table)
        if name is None:
            raise InputError(
                f"transformers must have a name for every weight of {encoder.title} "
                f"({OTHER_FORMATS}). Received: {google}"
            )
        array = np.asarray(variable.value)
        if google.endswith("/token_type_embeddings") and len(array) == 1:
            array = np.concatenate([array, np.zeros_like(array)])  # see `to_huggingface`
        array = array.T if google.endswith("/kernel") else array
        arrays[name.removeprefix(prefix)] = np.ascontiguousarray(array)
    config = loaded.config
    if encoder.always_projects and config.embedding_size == config.hidden_size:
        # Google's code has no projection if the widths are equal.
        size, google_names = config.hidden_size, encoder.model_class.google_names
        for word, array in (("kernel", np.eye(size)), ("bias", np.zeros(size))):
            name = google_name(google_names["embedding_projection/{w}"].format(w=word), table)
            assert name is not None  # always_projects implies a row in the table
            arrays[name.removeprefix(prefix)] = array.astype(np.float32)
    if encoder.two_layers and architecture.suffix == "ForSequenceClassification":
        arrays |= as_two_layers(arrays.pop("classifier.weight"), arrays.pop("classifier.bias"))
    return arrays


def check_reloaded(loaded: LoadedModel, directory: str) -> None:
    """Loads the folder and compares its outputs with the model's, on random ids.

    The tolerances are `model_formats.runtimes.check.TOLERANCES`.
    """
    reloaded, graph = load_folder(directory), make_graph(loaded, "int32")

    def run(inputs):
        outputs = graph(*(inputs[name] for name in input_names(loaded)))
        return {name: np.asarray(value) for name, value in outputs.items()}

    # In this order, as the folder may lack outputs that its transformers class does not have.
    check_file(reloaded, make_graph(reloaded, "int32"), run, "float16")


def config_of(loaded: LoadedModel, architecture: TransformersClass) -> dict[str, Any]:
    """Returns the contents of config.json.

    "dtype" is the type in which transformers computes, not the type of the stored weights.
    """
    tokenizer, special, task = loaded.tokenizer, {}, TASKS.get(loaded.task)
    # Whether vectors were trained to be truncated to several sizes.
    has_sizes = architecture.makes_vectors and len(loaded.model.sizes) > 1
    if tokenizer is not None:
        ids = loaded.encoder.special_ids
        special = {key: getattr(tokenizer, name) for key, name in ids.items()}
    return {
        "architectures": [class_name(loaded, architecture)],
        **to_huggingface(loaded.config, loaded.model_type),
        **special,
        **loaded.encoder.class_keys.get(architecture.suffix, {}),
        **label_keys(loaded),
        **({SIZES_KEY: list(loaded.model.sizes)} if has_sizes else {}),
        **({SETTINGS_KEY: settings_to_export(task, loaded.settings)} if task else {}),
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def split_into_shards(
    arrays: Mapping[str, np.ndarray], largest: int | None
) -> list[dict[str, np.ndarray]]:
    """Splits a dict of arrays, in its order, into dicts of at most `largest` bytes.

    A larger array gets a shard of its own. None for a single shard.
    """
    shards: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in arrays.items():
        if largest is not None and shards[-1] and size + array.nbytes > largest:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes
    return shards


def write_weights(
    directory: str, arrays: Mapping[str, np.ndarray], max_shard_size: int | None = None
) -> None:
    """Writes model.safetensors, or shards with an index.

    `max_shard_size` is the maximum size of a file in bytes, which a single array may exceed; None
    for one file.
    """
    shards = split_into_shards(arrays, max_shard_size)
    total = sum(array.nbytes for array in arrays.values())
    weight_map: dict[str, str] = {}
    with progress("writing the weights", total, "B") as bar:
        for number, shard in enumerate(shards, start=1):
            name = WEIGHTS_FILE
            if len(shards) > 1:
                name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            # transformers rejects files without this metadata.
            save_file(shard, os.path.join(directory, name), metadata={"format": "pt"})
            weight_map |= dict.fromkeys(shard, name)
            bar.update(sum(array.nbytes for array in shard.values()))
    if len(shards) > 1:
        parameters = sum(array.size for array in arrays.values())
        metadata = {"total_parameters": parameters, "total_size": total}
        index = {"metadata": metadata, "weight_map": dict(sorted(weight_map.items()))}
        write_json(os.path.join(directory, INDEX_FILE), index)
