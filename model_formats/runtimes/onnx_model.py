"""Exports a model as an ONNX file, for ONNX Runtime or other programs that read the format."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.check import Run, check_file
from model_formats.runtimes.description import describe, write_files
from model_formats.runtimes.ids_graph import make_graph, make_graph_of_weights

if TYPE_CHECKING:
    import keras
    import onnx

MODEL_FILE = "model.onnx"

# The version of the operators, which onnxruntime supports since 1.12.
OPSET = 17


def export(loaded: LoadedModel, directory: str, precision: str) -> str:
    """Writes the graph from ids to outputs as `MODEL_FILE`, with its description and tokenizer.

    The inputs are int64, as tokenizers return them; the number of rows and their length are open.

    Args:
        precision: the precision of the matrices: "float32"; "float16", which halves the file and
            computes in float32; or "int8", which computes in integers and quantizes the other
            factor of a product at run time.

    Raises:
        InputError: the file's outputs differ from the model's.
    """
    import onnx

    graph = make_graph(loaded, "int64")
    description = describe(loaded, graph, precision)
    path = os.path.join(directory, MODEL_FILE)
    proto = convert(loaded, description)
    if precision == "float16":
        to_float16(proto.graph)
    elif precision == "int8":
        from model_formats.runtimes.onnx_int8 import quantize

        table = loaded.model.encoder.embeddings.word_embeddings.path.replace("/", "_")
        proto = quantize(proto, table, path)
    properties = {"task": loaded.task, "precision": precision, "labels": ",".join(loaded.labels)}
    onnx.helper.set_model_props(proto, properties)
    onnx.save(proto, path)
    onnx.checker.check_model(path, full_check=True)
    check_file(loaded, graph, open_file(path), precision)
    write_files(directory, description, loaded.tokenizer)
    return f"onnxruntime.InferenceSession('{{folder}}/{MODEL_FILE}')"


def convert(loaded: LoadedModel, description: Mapping[str, Any]) -> "onnx.ModelProto":
    """Converts a model's graph to a float32 `ModelProto` with weights and named axes."""
    import tf2onnx

    of_weights, weights = make_graph_of_weights(loaded, "int64")
    proto, _ = tf2onnx.convert.from_function(of_weights, of_weights.input_signature, opset=OPSET)
    add_weights(proto.graph, weights)
    name_axes(proto.graph, description)
    return proto


def open_file(path: str) -> Run:
    """Returns a function that runs a file on a dict of input arrays and returns output arrays."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def name_axes(graph: "onnx.GraphProto", description: Mapping[str, Any]) -> None:
    """Writes the names of the open sizes into a graph's inputs and outputs."""
    tensors = {**description["inputs"], **description["outputs"]}
    for value in (*graph.input, *graph.output):
        shape = tensors[value.name]["shape"]
        for dimension, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            if isinstance(size, str):
                dimension.dim_param = size


def add_weights(graph: "onnx.GraphProto", weights: "Mapping[str, keras.Variable]") -> None:
    """Turns the inputs that stand for weights into initializers; drops unused ones."""
    from onnx import numpy_helper

    read = {name for node in graph.node for name in node.input}
    for value in [*graph.input]:
        if value.name not in weights:
            continue
        graph.input.remove(value)
        if value.name in read:
            array = np.asarray(weights[value.name].value)
            graph.initializer.append(numpy_helper.from_array(array, value.name))


def to_float16(graph: "onnx.GraphProto") -> None:
    """Stores the matrices of a graph in float16, followed by a cast to float32.

    The runtime computes in float32, and casts each matrix once, when it opens the file, because
    values between layers need more than 11 bits, and processors have few float16 operators.
    """
    from onnx import TensorProto, helper, numpy_helper

    for initializer in [*graph.initializer]:
        if initializer.data_type != TensorProto.FLOAT or len(initializer.dims) < 2:
            continue
        name = initializer.name
        value = numpy_helper.to_array(initializer).astype(np.float16)
        graph.initializer.remove(initializer)
        graph.initializer.append(numpy_helper.from_array(value, f"{name}_float16"))
        node = helper.make_node("Cast", [f"{name}_float16"], [name], to=TensorProto.FLOAT)
        graph.node.insert(0, node)
