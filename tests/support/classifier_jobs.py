"""Small classification tasks with tiny models, for tests of run_classifier."""

import json
import signal

import numpy as np
import tensorflow as tf
from jobs import signal_at_step
from tiny import SIZES

from run_scripts import classifier

# Several runs in one process trace the same functions anew, which TensorFlow warns of.
tf.get_logger().setLevel("ERROR")

MNLI = ("index", "sentence1", "sentence2", "label1", "gold_label")
GOOD, BAD, OTHER = ["good", "nice", "fun"], ["bad", "dull", "sad"], ["the", "film", "is", "a", "so"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *OTHER]
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def sentence(rng, words, length=5):
    """Words without a meaning, one of `words` among them."""
    chosen = list(rng.choice(OTHER, rng.integers(1, length)))
    chosen.insert(rng.integers(len(chosen) + 1), str(rng.choice(words)))
    return " ".join(chosen)


def single_rows(count, seed=0):
    """Sentences that are good or bad."""
    rng = np.random.default_rng(seed)
    labels = ["good" if i % 2 else "bad" for i in range(count)]
    return [(sentence(rng, GOOD if label == "good" else BAD), label) for label in labels]


def write_table(path, header, rows):
    """A .tsv; without a header where that is empty."""
    lines = [header] * bool(header) + list(rows)
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")


def write_splits(folder, header, rows, **splits):
    """A .tsv a split: from which row to which."""
    folder.mkdir(exist_ok=True)
    for split, (start, end) in splits.items():
        write_table(folder / f"{split}.tsv", header, rows[start:end])
    return folder


def write_mnli(folder):
    """MNLI's files, small."""
    rng = np.random.default_rng(0)
    rows = [
        (i, sentence(rng, GOOD), sentence(rng, BAD), "-", label)
        for i, label in enumerate(["contradiction", "entailment", "neutral"] * 12)
    ]
    folder.mkdir()
    write_table(folder / "train.tsv", MNLI, rows[:24])
    write_table(folder / "dev_matched.tsv", MNLI, rows[24:30])
    write_table(folder / "dev_mismatched.tsv", MNLI, rows[30:])
    for name in ("test_matched", "test_mismatched"):
        write_table(folder / f"{name}.tsv", MNLI[:3], [row[:3] for row in rows[:4]])


class Job:
    """Configurations, a vocabulary, data, and ways to run the program on them.

    Args:
        folder: a `Path`, where everything is.
        sizes: what differs from `SIZES` in the models' configurations, beside the one layer.
    """

    def __init__(self, folder, **sizes):
        self.folder = folder
        self.output = folder / "output"
        self.data = folder / "data"
        (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        for kind, extra in (("bert", {}), ("albert", {"embedding_size": 16})):
            config = {**SIZES, "num_hidden_layers": 1, **NO_DROPOUT, **extra, **sizes}
            (folder / f"{kind}.json").write_text(json.dumps(config))

    def argv(self, kind="bert", **flags):
        """The command line; a flag that is None is left out."""
        values = {
            f"{kind}_config_file": self.folder / f"{kind}.json",
            "vocab_file": self.folder / "vocab.txt",
            "data_dir": self.data,
            "output_dir": self.output,
            "task_name": "tsv",
            "do_train": True,
            "max_seq_length": 16,
            "train_batch_size": 8,
            "train_step": 40,
            "learning_rate": 0.003,
            "bucket_boundaries": "none",  # one length compiles sooner
            "xla": "off",  # likewise
            **flags,
        }
        return ["run_classifier.py"] + [f"--{k}={v}" for k, v in values.items() if v is not None]

    def run(self, *arguments, **flags):
        """Runs the program in this process; returns its exit status."""
        return classifier.main(self.argv(*arguments, **flags))

    def again(self, **flags):
        """Runs it on what lies in the output directory, with nothing but the data given."""
        flags = {"output_dir": self.output, "data_dir": self.data, "xla": "off", **flags}
        argv = [f"--{name}={value}" for name, value in flags.items()]
        return classifier.main(["run_classifier.py", *argv])

    def stop(self, monkeypatch, number, step, **flags):
        """Runs the program, which gets a signal once so many updates are made."""
        kept = signal.signal(number, lambda *_: None)
        try:
            with monkeypatch.context() as patch:
                signal_at_step(number, step, patch.setattr)
                return self.run(**flags)
        finally:
            signal.signal(number, kept)


def read_table(path):
    """The cells of a .tsv."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
