"""Writes the features of texts: Google's JSON lines, or arrays in an .npz file.

Shapes: N rows, T pieces of a row, P pieces of all rows, L layers asked for, H hidden.
"""

import json
import zipfile

import numpy as np

from bert_common.atomic_write import atomic_write

# As google-research/bert extract_features.py.
DECIMALS = 6


def write_json_lines(path, rows, features, layers, tokenizer):
    """Writes one JSON object a row, as google-research/bert extract_features.py.

    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]},
    ...]}, ...]}

    Args:
        path: gets its name when the file is whole.
        rows: `finetuning.inputs.Row`s.
        features: for each row, in order, an array [T, L, H].
        layers: the numbers of the layers, as they were asked for.
        tokenizer: names the pieces.
    """
    with atomic_write(path) as file:
        for number, (row, values) in enumerate(zip(rows, features, strict=True)):
            tokens = tokenizer.convert_ids_to_tokens(row.ids.tolist())
            file.write(json_line(number, tokens, values, layers).encode("ascii"))


def json_line(number, tokens, values, layers):
    """The line of one row, whose values are [T, L, H]."""
    # Equal to Python's round() of every value: a float32 times a million is exact in float64.
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


def write_arrays(path, rows, features, layers, hidden_size, pooled):
    """Writes an .npz file, row after row, so that no more than a row need be in memory.

    With a vector for each row: "features" [N, L, H] float32, "layers" [L]. With a vector for
    each piece: "features" [P, L, H], "layers", "row_splits" [N + 1] (row i is
    features[row_splits[i] : row_splits[i + 1]]), "input_ids" [P].

    Args:
        path: gets its name when the file is whole.
        rows: `finetuning.inputs.Row`s.
        features: for each row, in order, an array [L, H] if pooled, else [T, L, H].
        layers: the numbers of the layers, as they were asked for.
        hidden_size: H.
        pooled: whether each row has one vector.
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
