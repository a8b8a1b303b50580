"""The export_model program, which writes a model in the format of other software."""

import dataclasses
import functools
import importlib
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from model_formats.export_folder import check_output_dir, export_folder
from model_formats.folder_tokenizer import check_table
from model_formats.model_folder import ModelFolder
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, FOLDER, NOTHING
from run_scripts.flags.tokenizer import TokenizerFlags, open_tokenizer, source_of
from run_scripts.flags.training import check_checkpoint
from run_scripts.given_model import named_tokenizer


class Format(NamedTuple):
    """The module that writes an export format, and what the export takes and needs."""

    # Its `export(loaded, directory, **options)` writes into an existing, empty folder, and returns
    # how to load the result, with {folder} in place of the folder's path.
    module: str
    options: tuple[str, ...] = ()  # the names of the flags that it takes
    precisions: tuple[str, ...] = ()  # the values that --precision may have
    libraries: Mapping[str, str] = {}  # package that it needs -> argument of pip install


FORMATS = {
    "google": Format("model_formats.google"),
    "huggingface": Format(
        "model_formats.huggingface.export",
        ("max_shard_size", "card_file"),
        ("float32", "float16"),
        {"safetensors": "safetensors"},
    ),
    "keras": Format("model_formats.keras_file"),
    "difference": Format(
        "model_formats.difference_export", ("base_dir", "rank"), ("float32", "float16")
    ),
    "saved_model": Format(
        "model_formats.saved_model.export", libraries={"tensorflow_text": "tensorflow-text"}
    ),
    "onnx": Format(
        "model_formats.runtimes.onnx_model",
        precisions=("float32", "float16", "int8"),
        libraries=dict.fromkeys(("onnx", "tf2onnx", "onnxruntime"), "-e '.[onnx]'"),
    ),
    "litert": Format(
        "model_formats.runtimes.litert_model",
        precisions=("float32", "float16", "int8"),
        libraries={"ai_edge_litert": "-e '.[litert]'"},
    ),
}


# As transformers reads max_shard_size: powers of 1000, or of 1024 with an i.
_UNITS = {
    "": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ExportFlags(TokenizerFlags, DeviceFlags):
    """Exports a model, pre-trained or fine-tuned, for other software.

    --format=google writes the checkpoint, configuration and vocabulary that google-research's
    programs read. huggingface writes a folder for transformers, keras a .keras file, and
    saved_model a SavedModel for TensorFlow Serving, with the tokenizer inside. onnx and litert
    write the graph from token ids to outputs, for ONNX Runtime and LiteRT. difference writes what
    fine-tuning changed in the model in --base_dir, as low-rank matrices that this project's
    programs read."""

    EXAMPLE = "--model_dir=output/model --output_dir=output/transformers --format=huggingface"

    model_dir: str = groups.MODEL.input_folder(
        "The folder of the model to export, pre-trained or fine-tuned.", required=True
    )
    output_dir: str = groups.OUTPUT.output_folder(
        "The folder to write the export to. It must be new, empty or an earlier export, which is "
        "replaced.",
        required=True,
    )
    format: str = groups.EXPORT.required(
        "The format to write. difference: only the changes from --base_dir.", choices=FORMATS
    )
    init_checkpoint: str = groups.MODEL.optional(
        "The checkpoint to export. Default: the best checkpoint in --model_dir, else the newest.",
        is_input=True,
        takes=(FILE, FOLDER, NOTHING),
    )
    generator: bool = groups.MODEL.flag(
        False,
        "Export ELECTRA's generator, which predicts masked tokens, instead of its discriminator.",
    )
    precision: str = groups.DEVICES.optional(
        "The dtype of the stored weights. float16, for --format=huggingface, difference, onnx"
        " or litert, halves the file size. int8, for onnx or litert, quantizes the weight "
        "matrices and computes with integers. Default: float32.",
        choices=("float32", "float16", "int8"),
    )
    max_shard_size: str = groups.EXPORT.optional(
        "The maximum size of a weights file, such as 500MB, for --format=huggingface. Default: a "
        "single file."
    )
    card_file: str = groups.EXPORT.input_file(
        "For --format=huggingface, a Markdown file whose text is put at the beginning of the "
        "model card, in place of a title. If the file starts with front matter, between two "
        "--- lines, that is added to the card's metadata."
    )
    base_dir: str = groups.EXPORT.input_folder(
        "The folder of the model from which fine-tuning started, required for "
        "--format=difference. The export refers to it by relative path, so move both together."
    )
    rank: int = groups.EXPORT.optional(
        "For --format=difference, the rank used to approximate each weight matrix's change from "
        "--base_dir. A higher rank is more accurate but takes more space. Default: 24.",
        least=1,
    )
    max_size: str = groups.EXPORT.optional(
        "The maximum total size of the export, such as 20MB. A larger export is an error. "
        "Default: no limit."
    )


def export_model(values: ExportFlags) -> None:
    """Checks flags and folders, then loads the model and writes it."""
    form = FORMATS[values.format]
    options = read_options(values, form)
    most_bytes = parse_size("max_size", values.max_size) if values.max_size else None
    chosen = check_checkpoint(values.init_checkpoint)
    folder = ModelFolder.open(values.model_dir, chosen)
    check_weights(folder.checkpoint)
    named = named_tokenizer(values, folder)
    tokenizer = open_tokenizer(named) if source_of(named) else None
    if tokenizer is not None:
        check_table(folder.config, tokenizer.vocab_size, str(source_of(named)))
    check_libraries(form)
    check_output_dir(values.output_dir)
    read = [folder.path, folder.base.path, values.base_dir, chosen and os.path.dirname(chosen)]
    if os.path.realpath(values.output_dir) in map(os.path.realpath, filter(None, read)):
        raise InputError(
            "--output_dir must be another folder than the model's and its base's, as it is "
            f"replaced. Received: {values.output_dir}"
        )

    start_tensorflow(values)
    from model_formats.load_folder import load

    module = importlib.import_module(form.module)
    loaded = load(folder, tokenizer)
    if values.generator and values.format == "difference":
        raise InputError("--generator must be off with --format=difference. Received: on")
    if values.generator:
        from model_formats.electra_generator import generator_alone

        loaded = generator_alone(loaded)
    with export_folder(values.output_dir, values.format, most_bytes) as directory:
        how = module.export(loaded, directory, **options)
    folder = values.output_dir
    how = how.replace("={folder}", f"={shlex.quote(folder)}")  # of a command's flags
    how = re.sub("'{folder}(.*?)'", lambda quoted: repr(folder + quoted[1]), how)  # of Python
    print(f"{loaded.source}: exported to {folder}; to load it: {how.replace('{folder}', folder)}")


def read_options(values: ExportFlags, form: Format) -> dict[str, Any]:
    """Returns `export`'s arguments by name; raises an `InputError` for flags of other formats."""
    for name in {name for other in FORMATS.values() for name in other.options}:
        if getattr(values, name) is not None and name not in form.options:
            takers = [key for key, other in FORMATS.items() if name in other.options]
            raise InputError(
                f"--{name} must be given with --format={' or '.join(takers)}. Received: "
                f"--format={values.format}"
            )
    if values.precision and values.precision not in form.precisions:
        takers = [key for key, other in FORMATS.items() if values.precision in other.precisions]
        raise InputError(
            f"--precision={values.precision} must be given with --format={' or '.join(takers)}. "
            f"Received: --format={values.format}"
        )
    options = {name: getattr(values, name) for name in form.options}
    if options.get("max_shard_size"):
        options["max_shard_size"] = parse_size("max_shard_size", options["max_shard_size"])
    if "card_file" in options:
        path = options.pop("card_file")
        options["card_text"] = read_card(path) if path else ""
    if form.precisions:
        options["precision"] = values.precision or "float32"
    return options


def read_card(path: str) -> str:
    """Reads the text of --card_file."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"--card_file must be UTF-8. Received: {path}: {error}") from None


def parse_size(name: str, text: str) -> int:
    """Parses a size such as "500MB", "2GB" or "1GiB" into bytes."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) *([a-zA-Z]*)", text.strip())
    size = int(float(match[1]) * _UNITS.get(match[2].upper(), 0)) if match else 0
    if size < 1:
        raise InputError(
            f"--{name} must be a number with KB, MB or GB (KiB, MiB, GiB), such as 500MB. "
            f"Received: {text}"
        )
    return size


def check_libraries(form: Format) -> None:
    """Raises an `InputError` if a library that the format needs is not installed."""
    for library, requirement in form.libraries.items():
        if importlib.util.find_spec(library) is None:
            raise InputError(
                f"this format needs {library} (pip install {requirement}). Received: not installed"
            )


main = functools.partial(run_program, export_model, ExportFlags)

if __name__ == "__main__":
    sys.exit(main())
