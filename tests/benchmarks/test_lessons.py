"""The rows of lessons: what they are made of."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT
from sentence_order.lesson_rows import LessonRows
from sentence_order.lessons import KINDS, Lesson, read_lessons
from sentence_order.text_file import SPECIAL, TextFile

from bert_common.errors import InputError
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.text import TokenizedText, tokenize_documents
from run_scripts.reference.text import documents
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
    pairs = np.array([[0, 20, 20, 40, 0], [30, 50, 10, 30, 1]])
    return TextFile(train, tokenize_documents(found, tokenizer), pairs, special)


@pytest.fixture(scope="module")
def rows(content):
    return LessonRows(content, LENGTH, PREDICTIONS, SLOTS, 16000, SEED)


def block_of(rows, shares, number=0, **fields):
    return rows.block(number, Lesson(1, shares, **fields), ROWS)


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
            segments = own[~second][1:-1], own[second][:-1]
            label, weight = (
                fields[f"next_sentence_{name}"][slot] for name in ("labels", "weights")
            )
            found.append((segments, label, weight))
    return found


def segments_of(features):
    """The segments of rows, a set of tuples of ids."""
    return {tuple(s.tolist()) for segments, _, _ in sequences_of(features) for s in segments}


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
        "import sys; sys.path[:0] = ['.', 'benchmarks']; import sentence_order.lesson_rows, "
        "sentence_order.lessons, sentence_order.text_file; "
        "print({n.split('.')[0] for n in sys.modules} & {'tensorflow', 'keras', 'absl', 'tqdm', "
        "'tokenization', 'bert_tf', 'run_scripts', 'google_crc32c'})"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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


def test_labels_are_fair_coins(rows):
    for kind in ("natural", "next", "anywhere"):
        found = [
            label
            for number in range(4)
            for _, label, _ in sequences_of(block_of(rows, {kind: 1.0}, number, length=48))
        ]
        deviation = 0.5 / np.sqrt(len(found))
        assert abs(np.mean(found) - 0.5) < 5 * deviation, kind


def test_single_sentences_have_masks_but_no_order(content, rows):
    features = block_of(rows, {"single": 1.0})
    assert not features["next_sentence_weights"].any()
    assert features["masked_lm_weights"].sum(axis=1).min() > 0
    sizes = np.diff(content.train.documents)
    for (first, _), _, _ in sequences_of(features):
        assert any(
            sizes[document_of(content.train, start)] == 1
            for start in place_of(first, content.train)
        )


@pytest.mark.parametrize("kind", ["middle", "anywhere"])
def test_spliced_rows_are_of_three_documents(content, rows, kind):
    text, room = content.train, 48 - 4  # an even number, without [CLS] and two [SEP]
    sizes = []
    for segments, label, weight in sequences_of(block_of(rows, {kind: 1.0}, length=48)):
        first, second = segments[::-1] if label else segments
        assert len(first) + len(second) == room and weight == 1
        half, rest = len(first) - len(first) // 2, len(second) // 2
        parts = first[:half], np.concatenate([first[half:], second[:rest]]), second[rest:]
        origins = [{document_of(text, start) for start in place_of(part, text)} for part in parts]
        assert all(origins)
        assert any(len({a, b, c}) == 3 for a in origins[0] for b in origins[1] for c in origins[2])
        sizes.append(len(first))
    assert (set(sizes) == {room // 2}) == (kind == "middle")


def near(first, second, text):
    """Whether a segment follows another with a gap of less than 48 pieces."""
    ends = {start + len(first) for start in place_of(first, text)}
    return any(0 <= start - end < 48 for start in place_of(second, text) for end in ends)


def test_random_next_sentences_are_labelled(content, rows):
    text, swapped, sizes = content.train, [], np.diff(content.train.documents)
    for (first, second), label, _ in sequences_of(block_of(rows, {"next": 1.0}, length=48)):
        assert len(first) + len(second) <= 48 - 3
        assert any(sizes[document_of(text, start)] > 1 for start in place_of(second, text))
        assert near(first, second, text) or label
        swapped.append(label and near(second, first, text))
    assert np.mean(swapped) < 0.1  # few are so by chance


def test_clear_rows_are_those_of_the_file(content, rows):
    expected = {
        tuple(content.train.ids[np.r_[a:b, c:d]].tolist()) for a, b, c, d, _ in content.clear
    }
    found = sequences_of(block_of(rows, {"clear": 1.0}))
    assert {(*first.tolist(), *second.tolist()) for (first, second), _, _ in found} == expected


def test_rows_are_full_masked_and_of_the_shares(rows):
    features = block_of(rows, {"natural": 0.7, "single": 0.1, "anywhere": 0.2}, length=LENGTH)
    assert {name: values.shape for name, values in features.items()} == {
        **{name: (ROWS, LENGTH) for name in
           ("input_ids", "input_mask", "segment_ids", "segment_index", "position_ids")},
        **{f"masked_lm_{name}": (ROWS, PREDICTIONS) for name in ("positions", "ids", "weights")},
        **{name: (ROWS, SLOTS) for name in
           ("sequence_starts", "next_sentence_labels", "next_sentence_weights")},
    }  # fmt: skip
    assert features["input_mask"].mean() > 0.7  # four slots; the text's single sentences are short
    masked = features["masked_lm_weights"].sum() / features["input_mask"].sum()
    assert 0.13 < masked < 0.17
    found = sequences_of(features)
    pieces = [sum(map(len, segments)) + 3 for segments, _, _ in found]
    single = sum(n for n, (_, _, weight) in zip(pieces, found, strict=True) if not weight)
    assert abs(single / sum(pieces) - 0.1) < 0.05


def test_a_block_depends_on_seed_and_number_alone(content, rows):
    shares = dict.fromkeys(KINDS, 1 / len(KINDS))
    one = block_of(rows, shares, 3, length=48)
    again = LessonRows(content, LENGTH, PREDICTIONS, SLOTS, 16000, SEED)
    other = LessonRows(content, LENGTH, PREDICTIONS, SLOTS, 16000, SEED + 1)
    for name, values in block_of(again, shares, 3, length=48).items():
        np.testing.assert_array_equal(values, one[name])
    drawn = segments_of(one)
    for different in (block_of(again, shares, 4, length=48), block_of(other, shares, 3, length=48)):
        # Whole short documents are in both, and the clear rows.
        assert len(drawn & segments_of(different)) < 0.5 * len(drawn)


@pytest.mark.parametrize("kind", ["natural", "anywhere"])
def test_whole_words_are_masked(content, rows, kind):
    continuing = np.unique(content.train.ids[~content.train.word_starts])
    features, masked_words = block_of(rows, {kind: 1.0}, length=48), 0
    for row in range(ROWS):
        fields = {name: values[row] for name, values in features.items()}
        ids, masked = fields["input_ids"].copy(), np.zeros(LENGTH, bool)
        places = fields["masked_lm_positions"][: int(fields["masked_lm_weights"].sum())]
        ids[places], masked[places] = fields["masked_lm_ids"][: len(places)], True
        inside = np.isin(ids[1:], continuing)  # a word goes on from the piece before
        inside &= ~np.isin(ids[:-1], list(content.special.values()))
        np.testing.assert_array_equal(masked[1:][inside], masked[:-1][inside])
        masked_words += masked[1:][inside].sum()
    assert masked_words > ROWS


def test_masks_of_blocks_have_keys_of_their_own(rows, monkeypatch):
    drawn = []

    def note_keys(seed, numbers):
        drawn.append(set(numbers.tolist()))
        return derive_keys(seed, numbers)

    monkeypatch.setattr("sentence_order.lesson_rows.derive_keys", note_keys)
    for number in range(2):
        block_of(rows, {"natural": 1.0}, number)
    assert drawn[0] and not drawn[0] & drawn[1]


@pytest.mark.parametrize("beginning", [True, False])
def test_held_out_rows_begin_a_document_or_not(content, rows, beginning):
    features, text = rows.held_out(content.held_out, beginning, 40), content.held_out
    starts = {text.sentences[first] for first in text.documents[:-1]}
    found = sequences_of(features)
    assert len(found) == 40 and {label for _, label, _ in found} == {0, 1}
    for segments, _, _ in found:
        assert any(starts & set(place_of(s, text)) for s in segments) == beginning


def test_lessons_are_read(tmp_path):
    path = tmp_path / "lessons.json"
    rows = [
        {"updates": 2, "shares": {"next": 1.0}, "length": 128, "masked_lm": 0.1, "rate": 0.6},
        {"updates": 3, "shares": {"natural": 0.9, "single": 0.1}},
    ]
    path.write_text(json.dumps(rows))
    first, second = read_lessons(path)
    assert dataclasses.astuple(first) == (2, {"next": 1.0}, 128, 0.6, 0.1)
    assert dataclasses.astuple(second) == (3, {"natural": 0.9, "single": 0.1}, 512, 1.0, 1.0)


@pytest.mark.parametrize("name", ["reference_7", "natural"])
def test_the_lessons_of_the_measured_models(name):
    lessons = read_lessons(ROOT / "benchmarks" / "sentence_order" / f"{name}.json")
    assert sum(lesson.updates for lesson in lessons) == 14_000


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "{}", "[1]", '[{"updates": 1}]',
        '[{"updates": 1, "shares": {"natural": 1}, "speed": 1}]',
        '[{"updates": 1, "shares": {"natural": 0.5}}]',
        '[{"updates": 1, "shares": {"natural": 0.5, "reviews": 0.5}}]',
        '[{"updates": 1, "shares": {"natural": 2, "single": -1}}]',
        '[{"updates": 0, "shares": {"natural": 1}}]',
        '[{"updates": 2.5, "shares": {"natural": 1}}]',
        '[{"updates": 1, "shares": {"natural": 1}, "length": 8}]',
        '[{"updates": 1, "shares": {"natural": 1}, "rate": "fast"}]',
        '[{"updates": 1, "shares": {"natural": 1}, "masked_lm": 0}]',
    ],
)  # fmt: skip
def test_lessons_that_are_none_are_refused(tmp_path, text):
    path = tmp_path / "lessons.json"
    path.write_text(text)
    with pytest.raises(InputError, match="must") as caught:
        read_lessons(path)
    assert str(path) in str(caught.value) and str(caught.value).count("Received") == 1


def only(text, documents):
    """Some documents of a text."""
    first, last = text.documents[documents.start], text.documents[documents.stop]
    start, end = text.sentences[first], text.sentences[last]
    return TokenizedText(
        text.ids[start:end],
        text.word_starts[start:end],
        [bound - start for bound in text.sentences[first : last + 1]],
        [bound - first for bound in text.documents[documents.start : documents.stop + 1]],
    )


def test_lessons_whose_rows_cannot_be_drawn_are_refused_beforehand(content):
    text = content.train
    natural = range(text.num_documents - 10)
    single = range(text.num_documents - 10, text.num_documents)
    long_pair = np.array([[0, 40, 40, 80, 0]])
    cases = (
        ({"clear": 1.0}, 48, {"clear": content.clear[:0]}, "clear rows: at least 1"),
        ({"clear": 1.0}, 48, {"clear": long_pair}, "rows' pieces: at most 64. Received: 83"),
        ({"natural": 1.0}, 48, {"train": only(text, single)}, "natural pairs|documents, pairs"),
        ({"next": 1.0}, 48, {"train": only(text, single)}, "documents, pairs"),
        ({"single": 1.0}, 48, {"train": only(text, natural)}, "documents of one sentence"),
        ({"next": 1.0}, 65, {}, "at most 64. Received: 65"),
        ({"anywhere": 1.0}, 65, {}, "at most 64. Received: 65"),
        ({"middle": 1.0}, 48, {"train": only(text, range(2))}, "of 44 pieces: at least 3"),
    )
    for shares, length, changed, message in cases:
        rows = LessonRows(content._replace(**changed), LENGTH, PREDICTIONS, SLOTS, 16000, SEED)
        fine = Lesson(1, {"natural": 0.5, "single": 0.5})
        with pytest.raises(InputError, match=message):
            rows.check([Lesson(1, shares, length=length), fine])
    every = Lesson(1, dict.fromkeys(KINDS, 1 / len(KINDS)), length=48)
    LessonRows(content, LENGTH, PREDICTIONS, SLOTS, 16000, SEED).check([every])


def test_a_text_without_rows_to_measure_on_is_refused(content, rows):
    last = content.train.num_documents - 1
    single = only(content.train, range(last, last + 1))
    with pytest.raises(InputError, match="without the beginning"):
        rows.held_out(single, False, 4)
