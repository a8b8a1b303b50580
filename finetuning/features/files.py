"""Writes the features of texts as JSON lines, as arrays, or for TensorBoard's projector.

Shapes: N rows, T tokens of a row, P tokens of all rows, L requested layers, H hidden, E embedding.
"""

import glob
import json
import os
import zipfile
from collections.abc import Iterable, Sequence

import numpy as np

from bert_common.atomic_write import atomic_write
from finetuning.inputs import InputRow
from tokenization.base import TokenizerInterface

# As in google-research/bert extract_features.py.
DECIMALS = 6

# The file in which TensorBoard's projector looks for the names of the other files, and the endings
# of these names.
PROJECTOR_FILE = "projector_config.pbtxt"
VECTORS, LABELS = ".vectors.tsv", ".labels.tsv"


def write_json_lines(
    path: str,
    rows: Iterable[InputRow],
    features: Iterable[np.ndarray],
    layers: Sequence[int],
    tokenizer: TokenizerInterface,
) -> None:
    """Writes one JSON object per row, of features [T, L, H], as google-research/bert's script does.

    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]},
    ...]}, ...]}

    The layers have the indices that were requested. The file appears once it is complete.
    """
    with atomic_write(path) as file:
        for number, (row, values) in enumerate(zip(rows, features, strict=True)):
            tokens = tokenizer.convert_ids_to_tokens(row.ids.tolist())
            file.write(json_line(number, tokens, values, layers).encode("ascii"))


def json_line(number: int, tokens: Sequence[str], values: np.ndarray, layers: Sequence[int]) -> str:
    """Formats the line of one row, with values [T, L, H]."""
    # Equal to Python's round() of each value: a float32 times a million is exact in float64.
    values = np.round(values.astype(np.float64), DECIMALS).tolist()
    features = [
        {
            "token": token,
            "layers": [
                {"index": layer, "values": vector}
                for layer, vector in zip(layers, vectors, strict=True)
            ],
        }
        for token, vectors in zip(tokens, values, strict=True)
    ]
    return json.dumps({"linex_index": number, "features": features}) + "\n"


def write_arrays(
    path: str,
    rows: Sequence[InputRow],
    features: Iterable[np.ndarray],
    layers: Sequence[int],
    hidden_size: int,
    pooled: bool,
) -> None:
    """Writes an .npz file row by row, so that only one row need be in memory.

    With one vector per row (pooled): "features" [N, L, H] float32, "layers" [L]. With one vector
    per token: "features" [P, L, H], "layers", "row_splits" [N + 1] (row i is
    features[row_splits[i] : row_splits[i + 1]]), "input_ids" [P]. The layers have the indices that
    were requested. The file appears once it is complete.
    """
    lengths = [len(row.ids) for row in rows]
    arrays = {"layers": np.array(layers)}
    if not pooled:
        arrays["row_splits"] = np.cumsum([0, *lengths])
        arrays["input_ids"] = np.concatenate([row.ids for row in rows])
    shape = (len(rows) if pooled else sum(lengths), len(layers), hidden_size)
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array)
        with archive.open("features.npy", "w", force_zip64=True) as entry:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(entry, header)
            for values in features:
                entry.write(values.astype("<f4").tobytes())


def write_projector(
    directory: str, name: str, vectors: Iterable[np.ndarray], labels: Iterable[str]
) -> None:
    """Writes vectors [N, H] for TensorBoard's projector, in addition to the vectors in the folder.

    White space in their labels becomes single spaces.

    Args:
        directory: an existing folder, for `tensorboard --logdir`.
        name: the vectors' name in TensorBoard, of letters, digits, "-" and "_". Other vectors with
            this name are replaced.
    """
    lines = ("\t".join(f"{value:.7g}" for value in vector) for vector in vectors)
    # A blank line would be skipped, and all labels after it would belong to other vectors.
    shown = (" ".join(label.split()) or "(empty)" for label in labels)
    for ending, texts in ((VECTORS, lines), (LABELS, shown)):
        with atomic_write(os.path.join(directory, f"{name}{ending}")) as file:
            for text in texts:
                file.write(text.encode("utf-8", "replace") + b"\n")
    paths = sorted(glob.glob(os.path.join(glob.escape(directory), f"*{VECTORS}")))
    with atomic_write(os.path.join(directory, PROJECTOR_FILE)) as file:
        for name in (os.path.basename(path).removesuffix(VECTORS) for path in paths):
            entry = {"tensor_name": name, "tensor_path": f"{name}{VECTORS}",
                     "metadata_path": f"{name}{LABELS}"}  # fmt: skip
            fields = "".join(f'  {key}: "{value}"\n' for key, value in entry.items())
            file.write(f"embeddings {{\n{fields}}}\n".encode())
