"""extract_features: Google's format, arrays, the order of lines, one line for bad input."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_tf.checkpoint import google_variables, save_google_checkpoint, write_arrays
from finetuning.features import extraction as features
from finetuning.features.files import json_line
from finetuning.inputs import encode_pair, read_pairs
from run_scripts.extract_features import ExtractFeaturesFlags, main
from run_scripts.flags.parser import parse
from tests.support import oracle
from tests.support.crosses import slow
from tests.support.programs import command
from tests.support.tiny_models import SIZES, tiny_model
from tokenization import FullTokenizer

PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "was", "jim", "hen", "##son", "?", "a",
    "puppet", "##eer",
]  # fmt: skip

# Lengths up and down, a pair, a blank line, one that is cut.
TEXT = (
    "Who was Jim Henson ? ||| Jim Henson was a puppeteer\na\nwho was who\n\n"
    "Jim Henson\na a a a a a a a a a a a a a a a a a a a\njim ||| hen\nwho ?\n"
)
ALBERT = {"embedding_size": 16, "num_hidden_groups": 2, "inner_group_num": 2}

# google-research/bert README.md, "Using BERT to extract fixed feature vectors (like ELMo)"
README = """extract_features.py
  --input_file=/tmp/input.txt --output_file=/tmp/output.jsonl
  --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --layers=-1,-2,-3,-4 --max_seq_length=128
  --batch_size=8"""


class Job:
    """A model with random weights on disk, and a command line for it."""

    def __init__(self, folder, kind="bert", **changes):
        self.folder, self.kind = folder, kind
        own = ALBERT if kind == "albert" else {}
        changes = {"max_position_embeddings": 128, **own, **changes}
        self.model = tiny_model(kind, **changes)
        for variable in google_variables(self.model).values():
            if variable.ndim == 2:  # further from a normal distribution's middle
                variable.assign(10 * variable)
        sizes = {**SIZES, **changes}
        (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        (folder / f"{kind}_config.json").write_text(json.dumps(sizes))
        (folder / "text.txt").write_text(TEXT)
        save_google_checkpoint(self.model, str(folder / "model.ckpt-3"))
        self.flags = {
            "input_file": folder / "text.txt", "output_file": folder / "out.jsonl",
            f"{kind}_config_file": folder / f"{kind}_config.json",
            "init_checkpoint": folder / "model.ckpt-3", "vocab_file": folder / "vocab.txt",
            "layers": "-1,-2", "max_seq_length": 16, "batch_size": 3,
        }  # fmt: skip

    def run(self, **changes):
        flags = {**self.flags, **changes}
        argv = [f"--{name}={value}" for name, value in flags.items() if value is not None]
        return main(["extract_features.py", *argv])

    def arrays(self, **flags):
        """What the program writes as arrays."""
        assert self.run(output_file=self.folder / "out.npz", **flags) == 0
        with np.load(self.folder / "out.npz") as file:
            return dict(file)

    def rows(self, max_length=16):
        tokenizer = FullTokenizer(self.folder / "vocab.txt")
        lines = read_pairs(self.folder / "text.txt")
        return [encode_pair(tokenizer, *line, max_length) for line in lines]

    def expected(self, layers, max_length=16):
        """[T, L, H] of every line in float64 from the published formulas, one line at a time.

        Layer 0 is the embedding output.
        """
        weights = {k: v.numpy().astype(np.float64) for k, v in google_variables(self.model).items()}
        found = []
        for row in self.rows(max_length):
            batch = {"input_ids": row.ids[None], "segment_ids": row.segment_ids[None]}
            states = oracle.encode(weights, self.model.config, batch)["hidden_states"]
            found.append(np.stack([states[layer][0] for layer in layers], axis=1))
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Job(tmp_path_factory.mktemp("made"))


@pytest.fixture
def job(made, tmp_path):
    """The job in a folder of its own; the model is shared, and is not to be changed."""
    folder = shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    job = copy.copy(made)
    job.folder = folder
    job.flags = {
        name: folder / value.name if isinstance(value, Path) else value
        for name, value in made.flags.items()
    }
    return job


def json_lines(path):
    """The tokens of every line, with its values [T, L, H] and the numbers of its layers."""
    for number, line in enumerate(path.read_text().splitlines()):
        line = json.loads(line)
        assert list(line) == ["linex_index", "features"] and line["linex_index"] == number
        values = [[layer["values"] for layer in piece["layers"]] for piece in line["features"]]
        numbers = [[layer["index"] for layer in piece["layers"]] for piece in line["features"]]
        yield [piece["token"] for piece in line["features"]], np.array(values), numbers


@pytest.mark.parametrize("kind", (slow("bert"), "albert"))
def test_google_s_lines(tmp_path, kind, capsys):
    job = Job(tmp_path, kind)
    assert job.run(layers="-1,0,-2") == 0
    assert capsys.readouterr().out.startswith("8 lines, layers -1,0,-2: written to ")
    found = list(json_lines(tmp_path / "out.jsonl"))
    assert found[0][0] == [
        "[CLS]", "who", "was", "jim", "hen", "##son", "?", "[SEP]",
        "jim", "hen", "##son", "was", "a", "puppet", "##eer", "[SEP]",
    ]  # fmt: skip
    assert [len(tokens) for tokens, _, _ in found] == [16, 3, 5, 2, 5, 16, 5, 4]
    for (_, values, numbers), expected in zip(found, job.expected([-1, 0, -2]), strict=True):
        assert numbers == [[-1, 0, -2]] * len(expected)
        np.testing.assert_allclose(values, expected, atol=2e-5, rtol=0)
        assert np.abs(np.diff(expected, axis=1)).max() > 0.1  # the layers can be told apart


def test_google_s_readme(tmp_path):
    """The command, only its paths changed."""
    job = Job(tmp_path, num_hidden_layers=4)
    (tmp_path / "text.txt").write_text("Who was Jim Henson ? ||| Jim Henson was a puppeteer\n")
    names = ("input_file", "vocab_file", "bert_config_file", "init_checkpoint")
    paths = {name: job.flags[name] for name in names}
    assert main(command(README, **paths, output_file=tmp_path / "output.jsonl")) == 0
    ((tokens, values, numbers),) = json_lines(tmp_path / "output.jsonl")
    assert len(tokens) == 16 and numbers[0] == [-1, -2, -3, -4]
    (expected,) = job.expected([-1, -2, -3, -4], 128)
    np.testing.assert_allclose(values, expected, atol=2e-5, rtol=0)


def test_every_flag_of_google_s_program():
    argv = ["extract_features.py", "--input_file=a", "--output_file=b", "--do_lower_case=false"]
    more = ["--master=m", "--num_tpu_cores=8", "--use_one_hot_embeddings", "--nouse_tpu"]
    values = parse(ExtractFeaturesFlags, [*argv, *more])
    found = (values.layers, values.max_seq_length, values.batch_size, values.use_tpu)
    assert found == ("-1,-2,-3,-4", 128, 32, False) and values.do_lower_case is False


def test_values_are_rounded_as_python_rounds():
    rng = np.random.default_rng(0)
    ties = np.array([0.0078125, -0.0234375, 0.5, 2.5e-7, -1e-9, 7.0000005])
    values = np.concatenate([ties, rng.normal(size=500)]).astype(np.float32)
    line = json.loads(json_line(0, ["a"], values[None, None], [-1]))
    found = line["features"][0]["layers"][0]["values"]
    assert list(map(repr, found)) == [repr(round(float(value), 6)) for value in values]


POOLED = {
    "mean": lambda values: values.mean(axis=0),
    "cls": lambda values: values[0],
    "max": lambda values: values.max(axis=0),
}


@pytest.mark.parametrize("pooling", (None, "max", slow("mean"), slow("cls")))
def test_arrays_with_a_vector_a_line(job, pooling):
    arrays = job.arrays(pooling=pooling, layers="1,-2")
    assert set(arrays) == {"features", "layers"} and arrays["layers"].tolist() == [1, -2]
    assert arrays["features"].dtype == np.float32
    expected = [POOLED[pooling or "mean"](values) for values in job.expected([1, -2])]
    np.testing.assert_allclose(arrays["features"], expected, atol=2e-5, rtol=0)


def test_arrays_with_a_vector_a_piece(job):
    arrays = job.arrays(pooling="none", layers="-1")
    ids = [row.ids for row in job.rows()]
    np.testing.assert_array_equal(arrays["input_ids"], np.concatenate(ids))
    np.testing.assert_array_equal(arrays["row_splits"], np.cumsum([0, *map(len, ids)]))
    expected = np.concatenate(job.expected([-1]))
    np.testing.assert_allclose(arrays["features"], expected, atol=2e-5, rtol=0)


def test_batches_are_sorted_and_cut(job, monkeypatch):
    """Whatever the windows are, every row comes out in its place."""
    shapes = []
    original = features.pad_rows

    def recording(rows, length, pad_id):
        shapes.append((len(rows), length, max(len(row.ids) for row in rows)))
        return original(rows, length, pad_id)

    monkeypatch.setattr(features, "pad_rows", recording)
    rows, encoder = job.rows(), job.model.encoder
    alone = list(features.extract(encoder, rows, [-1], "none", 1))
    assert [len(values) for values in alone] == [len(row.ids) for row in rows]
    shapes.clear()
    together = list(features.extract(encoder, rows, [-1], "none", 3))
    assert shapes == [(3, 16, 16), (3, 8, 5), (2, 8, 3)]
    shapes.clear()
    # Of 32 numbers a piece: the first row alone, then 3 + 5 + 2 + 5 pieces, then 16, then 5 + 4.
    windows = list(features.extract(encoder, rows, [-1], "none", 3, max_values=32 * 16))
    assert [count for count, _, _ in shapes] == [1, 3, 1, 1, 2]
    for one, other, third in zip(alone, together, windows, strict=True):
        np.testing.assert_allclose(other, one, atol=2e-5, rtol=0)
        np.testing.assert_allclose(third, one, atol=2e-5, rtol=0)


def write_without(job, part):
    """A checkpoint without the variables whose names have this part; the flag that names it."""
    arrays = {name: v.numpy() for name, v in google_variables(job.model.encoder).items()}
    kept = {name: array for name, array in arrays.items() if part not in name}
    write_arrays(str(job.folder / "part.ckpt"), kept)
    return {"init_checkpoint": job.folder / "part.ckpt"}


def without_layer(job):
    return write_without(job, "layer_1/output/dense/bias")


def test_a_checkpoint_without_a_pooler(job):
    """Hidden layers do not need it."""
    assert job.run(**write_without(job, "bert/pooler/")) == 0


def file_with(content):
    def change(job):
        (job.folder / "text.txt").write_bytes(content)
        return {}

    return change


@pytest.mark.parametrize(
    "change, words",
    (
        (file_with(b""), ("text.txt", "must not be empty")),
        (file_with(b"a\n\xea\xb0\n"), ("UTF-8", "text.txt, line 2", "0xea")),
        ({"output_file": "text.txt"}, ("must not be a file that is read", "text.txt")),
        ({"output_file": "vocab.txt"}, ("the same as", "vocab.txt")),
        ({"layers": "-4"}, ("from -3 to 2", "2 layers, of which 1 is the first", "-4")),
        ({"layers": "0,3"}, ("from -3 to 2", "0,3")),
        ({"layers": "last"}, ("--layers", "last")),
        ({"layers": ""}, ("--layers",)),
        (without_layer, ("part.ckpt", "- bert/encoder/layer_1/output/dense/bias: missing")),
        ({"init_checkpoint": "nowhere.ckpt"}, ("nowhere.ckpt.index", "nothing there")),
        ({"init_checkpoint": None}, ("--init_checkpoint, --model_dir", "none")),
        ({"max_seq_length": 129}, ("max_position_embeddings", "129 and 128")),
        ({"pooling": "mean"}, ("--pooling", ".npz", "out.jsonl")),
    ),
)
def test_bad_input_is_one_line(job, fails, change, words, monkeypatch):
    monkeypatch.chdir(job.folder)
    fails(job.run, *words, **(change(job) if callable(change) else change))
    assert not list(job.folder.glob("*out.jsonl*"))


def test_nothing_half_written_stays(job, monkeypatch):
    """What was there stays until the new file is whole."""
    (job.folder / "out.jsonl").write_text("before")
    monkeypatch.setattr(features, "pad_rows", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        job.run()
    assert (job.folder / "out.jsonl").read_text() == "before"
    assert not list(job.folder.glob(".*"))
