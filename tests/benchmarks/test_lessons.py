"""The rows of lessons: what they are made of."""

import numpy as np
import pytest

from benchmarks.reference.text import documents
from benchmarks.sentence_order.lesson_rows import LessonRows
from benchmarks.sentence_order.lessons import Lesson, read_lessons
from benchmarks.sentence_order.text_file import SPECIAL, TextFile, read_text
from create_pretraining_data.instances.text import tokenize_documents
from tests.support.benchmark_programs import output_of
from tests.support.paths import ROOT, printed_by
from tokenization import load_tokenizer

TEXT = ROOT / "sample_corpus" / "heldout.txt"
MODEL = ROOT / "reference_model"
LENGTH, PREDICTIONS, SLOTS, ROWS, SEED = 64, 16, 4, 60, 5


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(MODEL)


@pytest.fixture(scope="module")
def content(tokenizer):
    """Documents of the sample text, and ten of one sentence each, which they do not hold."""
    found = list(documents([TEXT]))
    single = [(" ".join(reversed(line.split())),) for line in found[0][:10]]
    train = tokenize_documents([*found, *single], tokenizer)
    special = {name: getattr(tokenizer, name) for name in SPECIAL}
    return TextFile(train, tokenize_documents(found, tokenizer), special)


@pytest.fixture(scope="module")
def rows(content):
    return LessonRows(content, LENGTH, PREDICTIONS, SLOTS, 16000, SEED)


def block_of(rows, shares, number=0):
    return rows.block(number, Lesson(1, shares), ROWS)


def sequences_of(features):
    """The sequences of rows: (segments without masks, label, weight of the label)."""
    found = []
    for row in range(len(features["input_ids"])):
        fields = {name: values[row] for name, values in features.items()}
        ids, count = fields["input_ids"].copy(), int(fields["masked_lm_weights"].sum())
        ids[fields["masked_lm_positions"][:count]] = fields["masked_lm_ids"][:count]
        for slot in range(fields["segment_index"].max()):
            inside = fields["segment_index"] == slot + 1
            own, second = ids[inside], fields["segment_ids"][inside].astype(bool)
            labels, weights = fields["next_sentence_labels"], fields["next_sentence_weights"]
            found.append(((own[~second][1:-1], own[second][:-1]), labels[slot], weights[slot]))
    return found


def place_of(segment, text):
    """Where a segment is in a text, a list of the first pieces."""
    windows = np.lib.stride_tricks.sliding_window_view(text.ids, len(segment))
    return np.flatnonzero((windows == segment).all(axis=1)).tolist()


def document_of(text, piece):
    starts = [text.sentences[first] for first in text.documents]
    return int(np.searchsorted(starts, piece, side="right")) - 1


def test_drawing_rows_needs_neither_tensorflow_nor_a_tokenizer():
    """They are drawn on a machine that has NumPy and two of the project's folders."""
    code = (
        "import sys; from benchmarks.gpu_step import __main__; "
        "from benchmarks.sentence_order import lesson_rows, lessons, text_file; "
        "print({n.split('.')[0] for n in sys.modules} & {'tensorflow', 'keras', 'absl', 'tqdm', "
        "'tokenization', 'bert_tf', 'run_scripts', 'google_crc32c'})"
    )
    assert printed_by("-c", code).strip() == "set()"


def test_natural_segments_are_in_their_order_unless_swapped(content, rows):
    text = content.train
    for (first, second), label, weight in sequences_of(block_of(rows, {"natural": 1.0})):
        earlier, later = (second, first) if label else (first, second)
        ends = {start + len(earlier) for start in place_of(earlier, text)}
        starts = place_of(later, text)
        gaps = [start - end for start in starts for end in ends if start >= end]
        assert gaps and min(gaps) < LENGTH  # truncation leaves a gap
        assert weight == 1
        sizes = np.diff(text.documents)
        assert any(sizes[document_of(text, start)] > 1 for start in starts)


def test_rows_are_full_masked_and_of_the_shares(rows):
    features = block_of(rows, {"natural": 0.9, "single": 0.1})
    slots = ("sequence_starts", "next_sentence_labels", "next_sentence_weights")
    inputs = ("input_ids", "input_mask", "segment_ids", "segment_index", "position_ids")
    shapes = dict.fromkeys(inputs, (ROWS, LENGTH)) | dict.fromkeys(slots, (ROWS, SLOTS))
    masked = {f"masked_lm_{name}": (ROWS, PREDICTIONS) for name in ("positions", "ids", "weights")}
    assert {name: values.shape for name, values in features.items()} == shapes | masked
    assert features["input_mask"].mean() > 0.7  # four slots; the text's single sentences are short
    masked = features["masked_lm_weights"].sum() / features["input_mask"].sum()
    assert 0.13 < masked < 0.17
    found = sequences_of(features)
    pieces = [sum(map(len, segments)) + 3 for segments, _, _ in found]
    single = sum(n for n, (_, _, weight) in zip(pieces, found, strict=True) if not weight)
    assert abs(single / sum(pieces) - 0.1) < 0.05


@pytest.mark.parametrize("beginning", [True, False])
def test_held_out_rows_begin_a_document_or_not(content, rows, beginning):
    features, text = rows.held_out(content.held_out, beginning, 40), content.held_out
    starts = {text.sentences[first] for first in text.documents[:-1]}
    found = sequences_of(features)
    assert len(found) == 40 and {label for _, label, _ in found} == {0, 1}
    for segments, _, _ in found:
        assert any(starts & set(place_of(s, text)) for s in segments) == beginning


def test_lessons_are_read():
    first, second = read_lessons(ROOT / "benchmarks" / "sentence_order" / "natural.json")
    shares = {"natural": 0.95, "single": 0.05}
    assert (first, second) == (Lesson(707, shares, rate=0.6), Lesson(13_293, shares))


def test_file_keeps_a_text(tmp_path, tokenizer):
    path = tmp_path / "text.npz.xz"
    output_of(
        "sentence_order.lesson_text", f"--input_file={TEXT}", f"--held_out={TEXT}",
        f"--tokenizer_dir={MODEL}", f"--output_file={path}",
    )  # fmt: skip
    found, expected = read_text(path), tokenize_documents(documents([TEXT]), tokenizer)
    for part, values in expected._asdict().items():
        np.testing.assert_array_equal(getattr(found.train, part), values)
    assert found.special == {name: getattr(tokenizer, name) for name in SPECIAL}
