"""Words out of context, and the files of TensorBoard's projector as TensorBoard reads them."""

import os

import numpy as np
import pytest
from google.protobuf import text_format
from tensorboard.plugins.projector import projector_plugin

from bert_tf.checkpoint import google_variables
from finetuning.features.files import PROJECTOR_FILE, write_projector
from run_scripts.extract_features import main
from tests.support.models.model_folders import PIECES, write_model
from tests.support.vocabularies import write_lines

LINES = ["나는 학교에 갔다.", "the books ||| is red", "", "학교"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of each kind, lines and words; the models' tables of vectors."""
    folder, tables = tmp_path_factory.mktemp("made"), {}
    for kind in ("bert", "albert"):
        variables = google_variables(write_model(folder / kind, kind))
        tables[kind] = variables["bert/embeddings/word_embeddings"].numpy()
    write_lines(folder / "lines.txt", LINES)
    write_lines(folder / "words.txt", ["학교", "books", "나는 학교"])
    return folder, tables


def run(folder, kind, *flags):
    argv = ["x", f"--model_dir={folder}/{kind}", "--layers=-1", "--max_seq_length=16", *flags]
    return main([flag.replace("HERE", str(folder)) for flag in argv])


def projected(folder):
    """What TensorBoard shows of a folder: name -> (vectors, labels)."""
    config = projector_plugin.ProjectorConfig()
    text_format.Parse((folder / PROJECTOR_FILE).read_text(encoding="utf-8"), config)
    found = {}
    for entry in config.embeddings:
        vectors = projector_plugin._read_tensor_tsv_file(os.path.join(folder, entry.tensor_path))
        labels = (folder / entry.metadata_path).read_text(encoding="utf-8").splitlines()
        found[entry.tensor_name] = vectors, labels
    return found


@pytest.mark.parametrize("kind", ("bert", "albert"))
def test_words_out_of_context(made, kind, capsys):
    """ALBERT's are as narrow as its table."""
    folder, tables = made
    table, output = tables[kind], "--output_file=HERE/words.npz"
    assert run(folder, kind, "--word_embeddings", "--input_file=HERE/words.txt", output) == 0
    assert "3 words: written to " in capsys.readouterr().out
    with np.load(folder / "words.npz") as file:
        assert file.files == ["features"]
        found = file["features"]
    ids = [[12], [6, 9], [10, 11, 12]]
    np.testing.assert_allclose(found, [table[i].mean(axis=0) for i in ids], atol=1e-7)
    assert run(folder, kind, "--word_embeddings", output) == 0
    with np.load(folder / "words.npz") as file:
        np.testing.assert_array_equal(file["features"], table[: len(PIECES)])
        assert file["input_ids"].tolist() == list(range(len(PIECES)))


def test_lines_and_words_in_tensorboard(made):
    folder, tables = made
    flags = ["--input_file=HERE/lines.txt", "--projector_dir=HERE/shown"]
    output = "--output_file=HERE/lines.npz"
    assert run(folder, "bert", *flags, output, "--layers=0,-1", "--pooling=max") == 0
    with np.load(folder / "lines.npz") as file:
        features = file["features"]
    assert run(folder, "bert", "--word_embeddings", "--projector_dir=HERE/shown") == 0
    found = projected(folder / "shown")
    assert list(found) == ["lines_layer_-1", "lines_layer_0", "words"]
    for name, number in (("lines_layer_0", 0), ("lines_layer_-1", 1)):
        vectors, labels = found[name]
        np.testing.assert_allclose(vectors, features[:, number], rtol=1e-6)
        assert labels == [*LINES[:2], "(empty)", LINES[3]]
    vectors, labels = found["words"]
    np.testing.assert_allclose(vectors, tables["bert"][: len(PIECES)], rtol=1e-6)
    assert labels == PIECES


def test_labels_stay_beside_their_vectors(tmp_path):
    write_projector(tmp_path, "a", np.eye(3), ["a\tb\nc", " ", "\ud800"])
    vectors, labels = projected(tmp_path)["a"]
    np.testing.assert_array_equal(vectors, np.eye(3))
    assert labels == ["a b c", "(empty)", "?"]


LINES_OF = "--input_file=HERE/lines.txt"


@pytest.mark.parametrize(
    "flags, words",
    (
        (LINES_OF, ("one of --output_file, --projector_dir", "none")),
        ("--output_file=a.npz", ("--input_file must be given, or --word_embeddings",)),
        (
            f"{LINES_OF} --output_file=a.jsonl --projector_dir=HERE/p",
            ("--projector_dir is for an --output_file that ends in .npz", "a.jsonl"),
        ),
        (
            f"{LINES_OF} --projector_dir=HERE/p --pooling=none",
            ("--projector_dir and --pooling=none: only one may be given",),
        ),
        ("--word_embeddings --output_file=a.jsonl", ("--word_embeddings is for", ".npz")),
        (
            f"--word_embeddings --output_file=HERE/a.npz {LINES_OF}",
            ("a word must have a token", "number 3"),
        ),
        (f"{LINES_OF} --projector_dir=HERE/lines.txt", ("--projector_dir",)),
    ),
)
def test_bad_input(made, capsys, flags, words):
    assert run(made[0], "bert", *flags.split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line
