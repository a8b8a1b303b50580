"""Quantizes an ONNX graph with integer matrices, and activations quantized at run time.

ONNX Runtime's quantizer handles the matrices of the layers, with one scale per column. It would
store the word embeddings twice, with one scale for all tokens. Here each token has a scale, and
the embedding and the output projection share one table.

Shapes: B rows, T tokens of a row, V vocabulary, E embedding.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

# The largest distance of the table's uint8 values from zero, and the value that stands for zero.
LARGEST, ZERO = 127, 128


def quantize(proto: onnx.ModelProto, table: str, path: str) -> onnx.ModelProto:
    """Quantizes a float32 graph's matrices and word embeddings, named `table`, in place.

    The other embeddings and all vectors, a hundredth of a model, stay float32. The quantizer writes
    to `path`.
    """
    quantize_table(proto.graph, table)
    add_pre_process_metadata(proto)  # else the quantizer logs a request to preprocess the graph
    quantize_dynamic(
        proto,
        path,
        op_types_to_quantize=["MatMul"],
        nodes_to_exclude=[node.name for node in proto.graph.node if "embeddings_" in node.name],
        per_channel=True,
        weight_type=QuantType.QInt8,
        # 7 bits: processors without VNNI add two products of uint8 and int8 in 16 bits, which would
        # overflow with 8 bits (onnxruntime, "Quantize ONNX models").
        reduce_range=True,
    )
    return onnx.load(path)


def quantize_table(graph: onnx.GraphProto, name: str) -> None:
    """Replaces all uses of the word embeddings [V, E] by integers with one scale per row.

    Products of two uint8 values do not overflow on any processor.
    """
    (initializer,) = (tensor for tensor in graph.initializer if tensor.name == name)
    table = numpy_helper.to_array(initializer)  # [V, E]
    largest = np.abs(table).max(axis=1)  # [V]
    scale = np.where(largest > 0, largest, 1).astype(np.float32) / LARGEST
    graph.initializer.remove(initializer)
    arrays: dict[str, np.ndarray] = {
        "": (np.rint(table / scale[:, None]) + ZERO).astype(np.uint8),  # [V, E]
        "_scale": scale,
        "_zero": np.array(ZERO, np.uint8),
        "_one": np.array(1, np.float32),
        "_axis": np.array([-1], np.int64),
    }
    for suffix, value in arrays.items():
        graph.initializer.append(numpy_helper.from_array(value, name + suffix))
    transposes = (node for node in graph.node if node.op_type == "Transpose")
    transposed = [node.output[0] for node in transposes if node.input[0] == name]
    nodes = []
    for node in graph.node:
        if node.op_type == "Gather" and node.input[0] == name:
            nodes += _embedding(name, node)
        elif node.op_type == "MatMul" and node.input[1] in transposed:
            nodes += _projection(name, node)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _embedding(name, node):
    """Returns nodes that look up rows of the table: ids [B, T] -> [B, T, E]."""
    make, ids, out = helper.make_node, node.input[1], node.output[0]
    stored = [f"{out}_stored", f"{name}_one", f"{name}_zero"]
    return [
        make("Gather", [name, ids], [f"{out}_stored"], axis=0),  # [B, T, E]
        make("DequantizeLinear", stored, [f"{out}_integers"]),
        make("Gather", [f"{name}_scale", ids], [f"{out}_scales"], axis=0),  # [B, T]
        make("Unsqueeze", [f"{out}_scales", f"{name}_axis"], [f"{out}_scale"]),  # [B, T, 1]
        make("Mul", [f"{out}_integers", f"{out}_scale"], [out]),  # [B, T, E]
    ]


def _projection(name, node):
    """Returns nodes that multiply by the transposed table: [B * T, E] -> [B * T, V]."""
    make, (x, table), out = helper.make_node, node.input, node.output[0]
    stored = [f"{x}_stored", table, f"{x}_zero", f"{name}_zero"]
    return [
        make("DynamicQuantizeLinear", [x], [f"{x}_stored", f"{x}_scale", f"{x}_zero"]),
        make("MatMulInteger", stored, [f"{out}_integers"]),  # [B * T, V]
        make("Cast", [f"{out}_integers"], [f"{out}_floats"], to=TensorProto.FLOAT),
        make("Mul", [f"{x}_scale", f"{name}_scale"], [f"{out}_scale"]),  # [V]
        make("Mul", [f"{out}_floats", f"{out}_scale"], [out]),  # [B * T, V]
    ]
