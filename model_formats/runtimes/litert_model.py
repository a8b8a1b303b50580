"""Exports a model as a LiteRT file (TensorFlow Lite), for phones or other small devices."""

import json
import os
import zipfile
from typing import Any

import tensorflow as tf

from bert_common.atomic_write import atomic_write
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.check import Run, check_file
from model_formats.runtimes.description import DESCRIPTION_FILE, describe, write_files
from model_formats.runtimes.ids_graph import make_graph

MODEL_FILE = "model.tflite"


def export(loaded: LoadedModel, directory: str, precision: str) -> str:
    """Writes the graph from ids to outputs as `MODEL_FILE`, with its description and tokenizer.

    The inputs are int32. The number of rows and their length are open, and are set by the
    signature's runner or `resize_tensor_input`.

    Args:
        precision: the precision of the matrices, as in `onnx_model.export`.

    Raises:
        InputError: the file's outputs differ from the model's.
    """
    graph = make_graph(loaded, "int32")
    description = describe(loaded, graph, precision)
    path = os.path.join(directory, MODEL_FILE)
    with atomic_write(path) as file:
        file.write(convert(loaded, graph, precision))
    # TensorFlow Lite's convention for metadata is a zip archive appended to the model.
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(DESCRIPTION_FILE, json.dumps(description, ensure_ascii=False))
    check_file(loaded, graph, open_file(path), precision)
    write_files(directory, description, loaded.tokenizer)
    return f"ai_edge_litert.interpreter.Interpreter('{{folder}}/{MODEL_FILE}')"


def open_file(path: str) -> Run:
    """Returns a function that runs a file on a dict of input arrays and returns output arrays."""
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(path).get_signature_runner()
    return lambda inputs: runner(**inputs)


def convert(loaded: LoadedModel, graph: Any, precision: str) -> bytes:
    """Converts the graph that `make_graph` returned to the bytes of the file."""
    module = tf.Module()
    # The converter freezes only variables that are attributes of this module.
    module.weights = [weight.value for weight in loaded.model.weights]
    functions = [graph.get_concrete_function()]
    converter = tf.lite.TFLiteConverter.from_concrete_functions(functions, module)
    if precision != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if precision == "float16":
        converter.target_spec.supported_types = [tf.float16]
    return converter.convert()
