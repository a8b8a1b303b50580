"""Windows over long texts: their places, their contents, their training targets."""

import itertools
import tracemalloc

import numpy as np
import pytest

from finetuning.question_answering.data import Answer, Question, read_questions
from finetuning.question_answering.windows import (
    answer_pieces,
    answer_span,
    encode_questions,
    make_windows,
    max_context_windows,
    pad_windows,
    window_places,
)
from tests.support.crosses import but_slow
from tests.support.paths import SHARED
from tests.support.refusals import refused
from tests.support.task_data import CONTEXTS, squad_content, write_questions, write_tokenizer
from tests.support.vocabularies import write_pieces
from tokenization import FullTokenizer, KoreanTokenizer


def cuts(question, pieces):
    """What the pieces cut out for each true answer."""
    places = (answer_pieces(pieces.spans, answer) for answer in question.answers)
    return [cut_answer(question.context, pieces.spans, place) for place in places]


def cut_answer(context, spans, place):
    return context[slice(*answer_span(context, spans, *place))]


@pytest.fixture
def tokenizer(tmp_path):
    return write_tokenizer(tmp_path)


@pytest.fixture
def questions(tmp_path):
    return read_questions(write_questions(tmp_path / "q.json", squad_content()), True)[0]


def googles_places(length, room, doc_stride):
    """As google-research/bert makes them, one by one."""
    spans, start = [], 0
    while start < length:
        size = min(length - start, room)
        spans.append((start, size))
        if start + size == length:
            break
        start += min(size, doc_stride)
    return spans


def googles_best_window(spans, piece):
    """The window that google-research/bert holds to have most around a piece."""
    scores = {
        number: min(piece - start, start + size - 1 - piece) + 0.01 * size
        for number, (start, size) in enumerate(spans)
        if start <= piece < start + size
    }
    return max(scores, key=scores.get)


@pytest.mark.parametrize("room", (1, 2, 5, 20))
@pytest.mark.parametrize("doc_stride", (1, 3, 5, 8))
def test_places_and_most_context_as_google(room, doc_stride):
    for length in range(1, 30):
        expected = googles_places(length, room, doc_stride)
        starts, lengths = window_places(length, room, doc_stride)
        assert list(zip(starts, lengths, strict=True)) == expected
        best = [googles_best_window(expected, piece) for piece in range(length)]
        assert max_context_windows(starts, lengths, length).tolist() == best


def test_a_short_last_window_counts_for_less():
    """A hundredth of the length outweighs a piece more around where 100 pieces are missing."""
    spans = googles_places(560, 300, 128)
    best = max_context_windows(*zip(*spans, strict=True), 560)
    assert best.tolist() == [googles_best_window(spans, piece) for piece in range(560)]
    assert spans[-1] == (384, 176)


def test_a_book_needs_memory_for_its_tokens_alone():
    """Not for each of its windows: of 20,000 tokens these were 50 MB, of ten times more 5 GB."""
    starts, lengths = window_places(20_000, 320, 128)
    tracemalloc.start()
    best = max_context_windows(starts, lengths, 20_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**20 and best[0] == 0 and best[-1] == len(starts) - 1


def test_an_empty_context_has_a_window(tokenizer):
    question = Question("a", "누구가?", "", (), True)
    encoded = encode_questions(tokenizer, [question], 64)
    [window], _ = make_windows([question], encoded, tokenizer, 16, 4, training=True)
    tokens = tokenizer.convert_ids_to_tokens(window.ids.tolist())
    assert tokens == ["[CLS]", "누구", "##가", "?", "[SEP]", "[SEP]"]
    assert window.spans.shape == (0, 2) and window.is_impossible


def test_rows(tokenizer, questions):
    encoded = encode_questions(tokenizer, questions, 3)
    # Questions about one text share its arrays.
    assert encoded[0].spans is encoded[3].spans is not encoded[4].spans
    assert encoded[0].context_ids is encoded[3].context_ids is not encoded[4].context_ids
    windows, _ = make_windows(questions, encoded, tokenizer, 16, 4, training=True)
    of_b = [window for window in windows if window.question == 1]
    tokens = [tokenizer.convert_ids_to_tokens(window.ids.tolist()) for window in of_b]
    first = "[CLS] 언제 ? [SEP] 임종석 ##은 19 ##89 ##년 2 ##월 15 ##일 서울 ##에서 [SEP]"
    assert " ".join(tokens[0]) == first
    assert " ".join(tokens[1][:5]) == "[CLS] 언제 ? [SEP] ##년"
    assert of_b[0].segment_ids.tolist() == [0] * 4 + [1] * 12
    assert of_b[0].p_mask.tolist() == [0, 1, 1, 1] + [0] * 11 + [1]
    assert [CONTEXTS[0][a:b] for a, b in of_b[0].spans[:4]] == ["임종석", "은", "19", "89"]
    assert len([w for w in windows if w.question == 2][0].ids) == 16
    # The question of c is cut: [CLS] 어디 ##에서 언제 [SEP].
    assert [w.first for w in windows if w.question == 2][0] == 5


@pytest.mark.parametrize("max_seq_length", (15, 18, 19, 24))
def test_an_answer_is_in_the_windows_that_hold_all_of_it(tokenizer, questions, max_seq_length):
    encoded = encode_questions(tokenizer, questions, 64)
    windows, _ = make_windows(questions, encoded, tokenizer, max_seq_length, 1, training=True)
    for window in windows:
        spans, held = window.spans, False
        for answer in questions[window.question].answers[:1]:
            end = answer.start + len(answer.text)
            held = spans[0][0] <= answer.start and end <= spans[-1][1]
        assert window.is_impossible == (not held)


def test_pieces_beside_the_answer_are_not_of_it():
    spans = np.array([(0, 2), (2, 4), (4, 6)])
    assert answer_pieces(spans, Answer("ab", 2)) == (1, 1)
    assert answer_pieces(spans, Answer("abc", 2)) == (1, 2)
    assert answer_pieces(spans, Answer("abc", 1)) == (0, 1)
    assert answer_pieces(spans, Answer("ab", 6)) is None


def test_what_windows_are_trained_for(tokenizer, questions):
    encoded = encode_questions(tokenizer, questions, 64)
    windows, left_out = make_windows(questions, encoded, tokenizer, 18, 4, training=True)
    assert left_out == 0
    for window in windows:
        question = questions[window.question]
        ends = window.start_position, window.end_position
        assert window.is_impossible == (ends == (0, 0))
        if not window.is_impossible:
            place = [end - window.first for end in ends]
            text = cut_answer(question.context, window.spans, place)
            assert text == question.answers[0].text
    assert {w.question for w in windows if not w.is_impossible} == {0, 1, 2, 4}
    for number, pieces in enumerate(encoded):  # one window shows the most around each piece
        shown = [w.spans[w.is_max_context] for w in windows if w.question == number]
        np.testing.assert_array_equal(np.sort(np.concatenate(shown), axis=0), pieces.spans)
    without = [question._replace(answers=()) for question in questions]
    made, _ = make_windows(without, encoded, tokenizer, 18, 4)
    assert len(made) == len(windows) and all(w.is_impossible for w in made)


def test_every_answer_is_cut_out_as_it_stands(tmp_path, questions):
    """Full width, accents, brackets, Hanja, invisible characters: the text is never rebuilt."""
    expected = [["임종석"], ["1989년 2월 15일", "2월 15일"], ["학생회관(學生會館)"], []]
    for switches in ({}, {"unknown": "character"}, {"fold_width": True}):
        tokenizer = write_tokenizer(tmp_path, **switches)
        encoded = encode_questions(tokenizer, questions, 64)
        assert list(map(cuts, questions, encoded)) == [*expected, ["e\u0301tude"]]


def test_a_piece_that_is_longer_than_the_answer(tmp_path):
    (tmp_path / "words").mkdir()
    path = write_pieces(tmp_path / "words", ["서울에서", "만났다", "그", "##를"])
    context = "서울에서 그를 만났다"
    questions = [
        Question("long", "그", context, (Answer("서울", 0),), False),
        Question("spaced", "그", context, (Answer("그를 ", 5),), False),
    ]
    for tokenizer in (FullTokenizer(path, do_lower_case=False), write_tokenizer(tmp_path)):
        encoded = encode_questions(tokenizer, questions, 64)
        assert answer_pieces(encoded[0].spans, Answer("서울", 0)) == (0, 0)
        long = "서울에서" if isinstance(tokenizer, FullTokenizer) else "서울"
        assert list(map(cuts, questions, encoded)) == [[long], ["그를"]]


def test_an_answer_without_a_piece_is_left_out_of_training(tokenizer):
    context = "임종석은 \u200b 서울에서"
    question = Question("x", "누구", context, (Answer("\u200b", 5),), False)
    encoded = encode_questions(tokenizer, [question], 64)
    assert make_windows([question], encoded, tokenizer, 32, 8, training=True) == ([], 1)
    assert len(make_windows([question], encoded, tokenizer, 32, 8)[0]) == 1


def test_markers_belong_to_no_answer(tmp_path):
    """A piece that is nothing but the mark of a word's end has no characters."""
    path = write_pieces(tmp_path, ["서울", "##역", "##\u2581", "\u2581"])
    options = {"word_end_marker": "\u2581", "word_end_marker_at": "eojeol"}
    tokenizer = KoreanTokenizer(path, unknown="character", **options)
    _, spans = tokenizer.encode_with_offsets("서울역 서울")
    assert len(spans) == 5
    assert answer_pieces(np.array(spans), Answer("서울역", 0)) == (0, 1)
    assert answer_pieces(np.array(spans), Answer("서울", 4)) == (3, 3)


def test_padding(tokenizer, questions):
    encoded = encode_questions(tokenizer, questions, 64)
    windows, _ = make_windows(questions[:1], encoded[:1], tokenizer, 24, 8, training=True)
    batch = pad_windows(windows, 30, pad_id=9)
    size = len(windows[0].ids)
    assert batch["input_ids"].shape == (len(windows), 30) and size == 24
    assert batch["input_ids"][0].tolist() == [*windows[0].ids, *[9] * 6]
    assert batch["input_mask"][0].tolist() == [1] * 24 + [0] * 6
    assert batch["p_mask"][0].tolist() == [*windows[0].p_mask, *[1] * 6]
    assert batch["start_positions"].tolist()[:2] == [5, 0]
    assert batch["end_positions"].tolist()[:2] == [5, 0]
    assert batch["is_impossible"].tolist()[:2] == [0, 1]


def test_no_room(tokenizer, questions):
    encoded = encode_questions(tokenizer, questions, 64)
    with refused("Received: 6, a question of 3"):
        make_windows(questions, encoded, tokenizer, 6, 4)
    with refused("at least 1. Received: 0"):
        make_windows(questions, encoded, tokenizer, 32, 0)


@pytest.mark.parametrize(
    "vocabulary, tokenizer_class",
    but_slow(
        [
            *itertools.product(
                ("koelectra.txt", "bert_multi_cased.txt"), (KoreanTokenizer, FullTokenizer)
            )
        ],
        [("koelectra.txt", KoreanTokenizer)],
    ),
)
def test_every_answer_of_korquad_by_its_offsets(tokenizer_class, vocabulary):
    """Its own offsets cut out exactly it; those of the text leave none of it out.

    Three of the answers end in a space, which no piece holds and every scorer drops.
    """
    path = SHARED / "data" / "korquad" / "KorQuAD_v1.0_dev.json"
    if not path.exists():
        pytest.skip("needs KorQuAD")
    tokenizer = tokenizer_class(SHARED / "data" / "vocabs" / vocabulary, do_lower_case=False)
    questions, _ = read_questions(path)
    cut = covered = 0
    for question, pieces in zip(questions, encode_questions(tokenizer, questions, 64), strict=True):
        for answer in question.answers:
            text = answer.text.strip()
            _, own = tokenizer.encode_with_offsets(answer.text)
            places = answer.start + own[0][0], answer.start + own[-1][1]
            cut += question.context[slice(*places)] == text
            found = cut_answer(question.context, pieces.spans, answer_pieces(pieces.spans, answer))
            covered += text in found
    assert (cut, covered) == (5774, 5774)
