"""The extract_features program, which writes the outputs of a model's layers for texts."""

import dataclasses
import functools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import kind_of_path, make_writable
from bert_common.progress import with_progress
from finetuning.features.files import write_arrays, write_json_lines, write_projector
from finetuning.inputs import SHORTEST, encode_pair, read_pairs
from finetuning.similarity.ranking import unit_vectors
from finetuning.tasks import POOLER
from model_formats.model_folder import warn_of_untrained_positions
from model_formats.transformers_files.sentence_modules import pooling_of
from model_formats.weights import open_weights
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.finetune import read_layers
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, FOLDER, NOTHING
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.flags.training import ModelFlags, check_checkpoint, check_length
from run_scripts.given_model import GivenModel, find_directory
from tokenization.loading import Tokenizer
from tokenization.unknown_share import warn_of_unknown

if TYPE_CHECKING:
    import keras

ARRAYS = ".npz"


@dataclasses.dataclass(frozen=True)
class ExtractFeaturesFlags(TokenizerFlags, DeviceFlags, ModelFlags):
    """Writes the layer outputs of BERT, ALBERT or ELECTRA for given texts.

    --input_file has one sentence per line, or two with " ||| " between them. The output is JSON
    lines as in Google's program or, if --output_file ends in .npz, NumPy arrays. --projector_dir
    writes the vectors for TensorBoard's projector. --word_embeddings writes vectors of single words
    instead, without context. The default model comes with this project."""

    EXAMPLE = (
        "--model_dir=output/model --input_file=sentences.txt --output_file=features.npz "
        "--layers=-1,-2 --pooling=mean"
    )

    input_file: str = groups.FILES.optional(
        'UTF-8 text: one sentence per line, or two with " ||| " between them. With '
        "--word_embeddings, one word per line.",
        is_input=True,
        is_path=True,
    )
    output_file: str = groups.OUTPUT.optional(
        "The file to write the vectors to: NumPy arrays if its name ends in .npz, else JSON "
        "lines. Required unless --projector_dir is given.",
        takes=(FILE, NOTHING),
    )
    projector_dir: str = groups.OUTPUT.output_folder(
        "The folder to write the vectors to, for TensorBoard's projector (tensorboard --logdir).",
        not_with=("pooling=none",),
    )
    layers: str = groups.LAYERS.flag(
        "-1,-2,-3,-4",
        "The layers to write, comma-separated. 0 is the embedding output, 1 the first layer, -1 "
        "the last.",
    )
    pooling: str = groups.LAYERS.optional(
        "How to pool the token vectors of a line into one vector, for .npz output and "
        "--projector_dir. mean, max: their mean or maximum. cls: the vector of [CLS]. none: no "
        "pooling, one vector per token. Default: as run_similarity or sentence-transformers "
        "trained the vectors, length included, else mean.",
        choices=("mean", "cls", "max", "none"),
    )
    word_embeddings: bool = groups.LAYERS.flag(
        False,
        "Write vectors from the embedding table for the words in --input_file or, without it, for "
        "the whole vocabulary. A word of several tokens gets the mean of their vectors.",
        not_with=("pooling=none",),
    )
    init_checkpoint: str | None = redeclare(
        ModelFlags,
        "init_checkpoint",
        help="The weights to use: a checkpoint, a safetensors file, or a folder with either. "
        "Default: the best checkpoint in --model_dir, else the newest.",
    )
    max_seq_length: int = groups.ROWS.flag(
        128,
        "The maximum number of tokens in a line, including special tokens; the rest is cut off.",
        least=SHORTEST,
    )
    batch_size: int = groups.PROCESSES.flag(32, "The number of lines to process at once.", least=1)
    use_tpu: bool = groups.TPU.flag(
        False, "Must be off: this program runs on GPUs and CPUs.", refused=True
    )
    master: str = groups.TPU.unused()
    num_tpu_cores: int = groups.TPU.unused(least=0)
    use_one_hot_embeddings: bool = groups.TPU.unused()


def extract_features(values: ExtractFeaturesFlags) -> None:
    """Checks flags and files, computes the features and writes them."""
    model = GivenModel.of(values, find_directory(values))
    check_flags(values, model.checkpoint)
    config, tokenizer = model.config, model.tokenizer
    lines = read_pairs(values.input_file) if values.input_file else None
    warn_of_unknown(tokenizer, (text for line in lines or () for text in line if text))
    if values.output_file:
        folder = os.path.dirname(values.output_file) or "."
        make_writable(folder, "--output_file must be in a folder that can be written")
    if values.projector_dir:
        make_writable(values.projector_dir, "--projector_dir must be a folder that can be written")
    if values.word_embeddings:
        extract_words(values, open_encoder(values, model), tokenizer, lines)
        return
    assert lines is not None  # `check_flags` requires them
    layers = read_layers("layers", values.layers, config)
    check_length(values, config)
    shown = with_progress(lines, "encoding", "lines")
    length = values.max_seq_length
    rows = [encode_pair(tokenizer, text, second, length) for text, second in shown]
    longest = max(len(row.ids) for row in rows)
    warn_of_untrained_positions(model.checkpoint, longest, "the longest line")
    encoder = open_encoder(values, model)
    from finetuning.features.extraction import extract

    arrays = is_of_arrays(values)
    pooling, normalize = values.pooling or "none", False
    if arrays and values.pooling is None:  # nothing else needs the settings of a head
        settings = model.checkpoint_folder.settings
        pooling = pooling_of(settings, model.checkpoint_folder.path)
        normalize = bool(settings.get("normalize"))
    features = extract(encoder, rows, layers, pooling, values.batch_size, tokenizer.pad_id or 0)
    if normalize:
        features = as_trained(features, [layer in (-1, config.num_block_calls) for layer in layers])
    if values.projector_dir:
        features = list(features)
        labels = [" ||| ".join(filter(None, line)) for line in lines]
        for number, layer in enumerate(layers):
            vectors = [vectors[number] for vectors in features]
            write_projector(values.projector_dir, f"lines_layer_{layer}", vectors, labels)
    if values.output_file and arrays:
        pooled = pooling != "none"
        write_arrays(values.output_file, rows, features, layers, config.hidden_size, pooled)
    elif values.output_file:
        write_json_lines(values.output_file, rows, features, layers, tokenizer)
    print(f"{len(rows):,} lines, layers {values.layers}: written to {places(values)}")


def as_trained(features: Iterable[np.ndarray], last: Sequence[bool]) -> Iterator[np.ndarray]:
    """Scales rows' vectors [L, H] of the last layer to length 1, as `Model.embed` does.

    `last` says of each of the L layers whether it is the last one.
    """
    for vectors in features:
        yield np.where(np.array(last)[:, None], unit_vectors(vectors), vectors)


def open_encoder(values: ExtractFeaturesFlags, model: GivenModel) -> "keras.Model":
    """Imports TensorFlow and loads the encoder."""
    start_tensorflow(values)
    from bert_tf.blockwise_attention import automatic_attention
    from bert_tf.checkpoint import load_arrays

    encoder = model.encoder.make_model(model.config, attention_function=automatic_attention)
    arrays = open_weights(model.checkpoint)
    load_arrays(encoder, dataclasses.replace(arrays, optional=(*arrays.optional, *POOLER)))
    return encoder


def extract_words(
    values: ExtractFeaturesFlags,
    encoder: "keras.Model",
    tokenizer: Tokenizer,
    lines: Sequence[tuple[str, str | None]] | None,
) -> None:
    """Writes the vectors of words or of the whole vocabulary, without context.

    The .npz file has "features" [N, E] and, for the whole vocabulary, "input_ids" [N].
    """
    from finetuning.features.extraction import word_vectors

    if lines is None:
        ids = sorted(tokenizer.inv_vocab)
        words = tokenizer.convert_ids_to_tokens(ids)
        table = np.asarray(encoder.embeddings.word_embeddings, np.float32)  # [V, E]
        arrays = {"features": table[ids], "input_ids": np.array(ids, np.int32)}
    else:
        words = [" ||| ".join(filter(None, line)) for line in lines]
        arrays = {"features": word_vectors(encoder, tokenizer, words)}
    if values.projector_dir:
        write_projector(values.projector_dir, "words", arrays["features"], words)
    if values.output_file:
        with atomic_write(values.output_file) as file:
            np.savez(file, **arrays)
    print(f"{len(words):,} words: written to {places(values)}")


def places(values: ExtractFeaturesFlags) -> str:
    """Returns the output file and folder that the flags name, for a message."""
    return " and ".join(filter(None, (values.output_file, values.projector_dir)))


def is_of_arrays(values: ExtractFeaturesFlags) -> bool:
    """Returns True if the output is NumPy arrays or a projector's files, not JSON lines."""
    return not values.output_file or values.output_file.endswith(ARRAYS)


def check_flags(values: ExtractFeaturesFlags, checkpoint: str | None) -> None:
    """Raises an `InputError` if the flags cannot work, whatever the text is."""
    if not places(values):
        raise InputError("one of --output_file, --projector_dir must be given. Received: none")
    if not values.input_file and not values.word_embeddings:
        raise InputError("--input_file must be given, or --word_embeddings. Received: neither")
    if not is_of_arrays(values):
        for name in ("pooling", "projector_dir", "word_embeddings"):
            if getattr(values, name):
                raise InputError(
                    f"--{name} is for an --output_file that ends in {ARRAYS}. Received: "
                    f"--{name}={getattr(values, name)}, --output_file={values.output_file}"
                )
    if values.input_file and (kind := kind_of_path(values.input_file)) in (FOLDER, NOTHING):
        raise InputError(f"--input_file must be a file. Received: {values.input_file}, {kind}")
    output = values.output_file or ""
    read = (values.input_file, values.vocab_file, values.spm_model_file, checkpoint)
    for source in filter(os.path.exists, filter(None, read)):
        if os.path.exists(output) and os.path.samefile(output, source):
            raise InputError(
                "--output_file must not be a file that is read. "
                f"Received: {output}, the same as {source}"
            )
    if not checkpoint:
        raise InputError("one of --init_checkpoint, --model_dir must be given. Received: none")
    check_checkpoint(checkpoint)


main = functools.partial(run_program, extract_features, ExtractFeaturesFlags)

if __name__ == "__main__":
    sys.exit(main())
