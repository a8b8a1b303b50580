"""Measures the speed and the quality of the exports of a model of text vectors.

    python -m benchmarks.serving.similarity --model_dir=output/vectors --data_dir=data/KorSTS

The texts are both sides of KorSTS's test pairs. Every contender is a separate process with all
cores that this process may use; they take turns, round after round. A run includes tokenization,
and all sort texts by length into batches of 32. The table shows texts per second, the least cosine
of a vector with the vector of `embed`, and Spearman's correlation of cosines and scores. Needs the
extras "onnx", "litert" and "finetune"; torch and sentence-transformers run if installed.

    embed           load_model(folder).embed(texts)
    onnx, litert    the exported file with float32 matrices; onnx_int8, litert_int8: with int8
    sentence        SentenceTransformer on torch, with the folder of --format=huggingface
"""

import functools
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import cell, flag, launch, median_and_spread, print_table, ratios, some_of
from benchmarks.contender import is_contender, serve
from benchmarks.serving.embedding import BATCH_SIZE, embed_in_turns, load_embed, make_embedding
from finetuning.datasets import DATASETS
from finetuning.metrics import score
from finetuning.readers import read_split

HEADINGS = ["vectors", "texts a second", "to embed", "least cosine", "Spearman, test"]
LIBRARIES = {"sentence": "sentence_transformers", "onnx": "tf2onnx", "litert": "ai_edge_litert"}


def main(options):
    """Prints a line for each contender."""
    print_table(HEADINGS, rows(options))


def rows(options):
    """Yields the rows of the table."""
    pairs, _ = read_split(DATASETS["korsts"], "test", options.data_dir)
    texts = [pair.text for pair in pairs] + [pair.second for pair in pairs]
    names = ["embed", *(name for name in options.contenders if name != "embed")]
    vectors, speeds = embed_in_turns(
        "benchmarks.serving.similarity", names, options.model_dir, texts, options.rounds
    )
    labels = np.array([pair.label for pair in pairs])
    for name, found in vectors.items():
        ratio, _ = median_and_spread(ratios(speeds[name], speeds["embed"]))
        spearman = score(("spearman",), labels, cosines(*np.split(found, 2)))["spearman"]
        least = cosines(found, vectors["embed"]).min()
        yield [
            name, cell(speeds[name], ",.0f"), f"{ratio:.2f}", f"{least:.5f}",
            f"{100 * spearman:.1f}",
        ]  # fmt: skip


def cosines(first, second):
    """Returns the cosines of the rows of two arrays, [N, H] each -> [N]."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.sum(first * second, axis=1) / lengths


def load_export(form, precision, folder):
    """Loads the exported file in its runtime, with all cores."""
    from finetuning.inputs import ROW_INPUTS, encode_pairs, pad_rows
    from finetuning.serving.signatures import longest_row
    from model_formats.load_folder import load_folder
    from model_formats.runtimes import litert_model, onnx_model

    module = {"onnx": onnx_model, "litert": litert_model}[form]
    loaded = load_folder(folder)
    with tempfile.TemporaryDirectory() as output:
        module.export(loaded, output, precision)
        path = os.path.join(output, module.MODEL_FILE)
        run = module.open_file(path) if form == "onnx" else open_litert(path)
    dtype = np.int64 if form == "onnx" else np.int32

    def embed(texts):
        rows = encode_pairs(loaded.tokenizer, [(t, None) for t in texts], longest_row(loaded))
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i].ids))
        found = np.empty((len(rows), loaded.config.hidden_size), np.float32)
        for start in range(0, len(rows), BATCH_SIZE):
            chosen = order[start : start + BATCH_SIZE]
            length = len(rows[chosen[0]].ids)
            batch = pad_rows([rows[i] for i in chosen], length, loaded.tokenizer.pad_id or 0)
            inputs = {name: batch[name].astype(dtype) for name in ROW_INPUTS}
            found[chosen] = run(inputs)["vectors"]
        return found

    return embed


def open_litert(path):
    """Makes a function that runs a file with all cores; the exporters' own uses one."""
    from ai_edge_litert.interpreter import Interpreter

    from bert_common.cpu import available_cores

    content = Path(path).read_bytes()  # the file is removed before it is run
    interpreter = Interpreter(model_content=content, num_threads=available_cores())
    runner = interpreter.get_signature_runner()
    return lambda inputs: runner(**inputs)


def load_sentence_transformers(folder):
    """Exports the folder to transformers and opens it as a sentence-transformers user would."""
    from sentence_transformers import SentenceTransformer

    from run_scripts.conversion.export_model import main as export_model

    with tempfile.TemporaryDirectory() as output:
        flags = [f"--model_dir={folder}", f"--output_dir={output}/st", "--format=huggingface"]
        if export_model(["export_model.py", *flags]):
            sys.exit("error: the model cannot be exported, see above")
        model = SentenceTransformer(f"{output}/st", device="cpu", trust_remote_code=True)
    return functools.partial(model.encode, batch_size=BATCH_SIZE)


CONTENDERS = {
    "embed": load_embed,
    "onnx": functools.partial(load_export, "onnx", "float32"),
    "onnx_int8": functools.partial(load_export, "onnx", "int8"),
    "litert": functools.partial(load_export, "litert", "float32"),
    "litert_int8": functools.partial(load_export, "litert", "int8"),
    "sentence": load_sentence_transformers,
}


INSTALLED = [
    name
    for name in CONTENDERS
    if name == "embed" or importlib.util.find_spec(LIBRARIES[name.partition("_")[0]])
]
FLAGS = {
    "model_dir": flag(str, "a folder that run_similarity wrote"),
    "data_dir": flag(str, "KorSTS, as it is published"),
    "contenders": some_of(INSTALLED, CONTENDERS),
}


if __name__ == "__main__":
    if is_contender():
        serve(functools.partial(make_embedding, CONTENDERS))
    else:
        launch(main, __doc__, FLAGS, rounds=3)
