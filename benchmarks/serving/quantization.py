"""Measures how much each precision of ONNX and LiteRT files changes a pre-trained model's outputs.

    python -m benchmarks.serving.quantization --model_dir=output/quickstart/model

A share of the tokens of every sentence is masked. For each file the table shows its size, the
largest difference between its logits and the model's, and the share of masked tokens at which both
predict the same token. Sentences are run one by one, as each has its own range of int8. Needs the
extras "onnx" and "litert".
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, flag, launch, positive, print_table, some_of
from benchmarks.serving.requests import read_texts

FORMATS = ("onnx", "litert")
PRECISIONS = ("float32", "float16", "int8")
MASKED_SHARE = 0.15

HEADINGS = ["format", "precision", "MB", "share", "export s", "difference", "same", "ms"]
FLAGS = {
    "model_dir": flag(str, "the folder of a pre-trained model"),
    "texts": flag(str(ROOT / "sample_corpus/heldout.txt"), "one a line"),
    "sentences": flag(200, type=positive(int)),
    "formats": some_of(FORMATS, FORMATS),
    "precisions": some_of(PRECISIONS, PRECISIONS),
}


def masked_inputs(loaded, sentences):
    """Yields the inputs [1, T] of every sentence with its masked positions."""
    rng, tokenizer = np.random.default_rng(0), loaded.tokenizer
    longest = loaded.trained_positions or loaded.config.max_position_embeddings
    for sentence in sentences:
        ids = tokenizer.encode(sentence)[: longest - 2]
        count = max(1, round(MASKED_SHARE * len(ids)))
        positions = 1 + rng.permutation(len(ids))[:count]
        row = np.array([[tokenizer.cls_id, *ids, tokenizer.sep_id]])  # [1, T]
        row[0, positions] = tokenizer.mask_id
        inputs = {"input_ids": row, "input_mask": np.ones_like(row)}
        yield {**inputs, "segment_ids": np.zeros_like(row)}, positions


def masked_logits(run, rows, dtype):
    """Returns the logits at the masked positions of all rows, and the milliseconds per row."""
    start, logits = time.perf_counter(), []
    for inputs, positions in rows:
        inputs = {name: value.astype(dtype) for name, value in inputs.items()}
        logits.append(np.asarray(run(inputs)["masked_lm_logits"])[0, positions])
    milliseconds = 1000 * (time.perf_counter() - start) / len(rows)
    return np.concatenate(logits), milliseconds  # [positions, V]


def main(arguments):
    """Exports, measures and prints the table."""
    from model_formats.load_folder import load_folder
    from model_formats.runtimes import litert_model, onnx_model
    from model_formats.runtimes.ids_graph import make_graph

    loaded = load_folder(arguments.model_dir)
    sentences = read_texts(arguments.texts, arguments.sentences)
    rows = list(masked_inputs(loaded, sentences))
    graph = make_graph(loaded, "int32")
    wanted, _ = masked_logits(lambda inputs: graph(*inputs.values()), rows, np.int32)
    size = sum(weight.value.numpy().nbytes for weight in loaded.model.weights)
    largest = np.abs(wanted).max()
    print(f"{len(rows)} sentences, {len(wanted)} masked tokens, logits up to {largest:.1f}")
    print(f"weights of {size / 1e6:.2f} MB\n")
    modules = {"onnx": (onnx_model, np.int64), "litert": (litert_model, np.int32)}

    def measure():
        for form in arguments.formats:
            module, dtype = modules[form]
            for precision in arguments.precisions:
                with tempfile.TemporaryDirectory() as folder:
                    start = time.perf_counter()
                    module.export(loaded, folder, precision)
                    seconds = time.perf_counter() - start
                    path = Path(folder) / module.MODEL_FILE
                    logits, milliseconds = masked_logits(module.open_file(str(path)), rows, dtype)
                    stored = path.stat().st_size
                same = np.mean(logits.argmax(-1) == wanted.argmax(-1))
                yield [
                    form, precision, f"{stored / 1e6:.2f}", f"{stored / size:.1%}",
                    f"{seconds:.1f}", f"{np.abs(logits - wanted).max():.2g}", f"{same:.1%}",
                    f"{milliseconds:.2f}",
                ]  # fmt: skip

    print_table(HEADINGS, measure())


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
