"""Evaluation during training: its counts, a single compilation, the guesses it shows."""

import dataclasses
import html
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard import plugin_util

from bert_common.errors import InputError
from bert_tf import pretraining
from bert_tf.summaries.mask_predictions import guesses_as_markdown
from bert_tf.training.evaluation import (
    RecordsEvaluator,
    as_shown,
    first_records,
    read_results,
    write_results,
)
from tests.support.crosses import slow
from tests.support.programs import SENTENCE
from tests.support.record_files import FORMAT, PACKED, flip_a_byte, make_files, padded
from tests.support.tiny_models import strategy_of, tiny_model, two_devices
from tests.support.vocabularies import SPECIAL, write_lines, write_pieces
from tokenization import KoreanTokenizer
from tokenization.base import TokenizerInterface

WITHOUT_LABELS = dataclasses.replace(FORMAT, sentence_label=False)


def make_model(strategy=None, dropout=0.3, kind="bert"):
    keras.utils.set_random_seed(0)
    with (strategy or tf.distribute.get_strategy()).scope():
        return tiny_model(kind, dropout=dropout, num_hidden_layers=1)


def make_evaluator(files, model=None, strategy=None, record_format=FORMAT, **changes):
    strategy = strategy or tf.distribute.get_strategy()
    arguments = {"batch_size": 8, "max_batches": 100, **changes}
    model = model or make_model(strategy)
    return RecordsEvaluator(model, strategy, files, record_format, **arguments)


def plainly(model, files, record_format=FORMAT):
    """Losses and accuracies over whole files in NumPy, from the logits of one large batch."""
    records = first_records(files, record_format, model.config, 1000)
    batch = {name: np.stack([r[name] for r in records]) for name in records[0]}
    outputs = model({k: v.astype(np.int32) for k, v in batch.items()}, training=False)
    results = {}
    for name, logits, labels, weights in (
        ("masked_lm", "masked_lm_logits", "masked_lm_ids", batch["masked_lm_weights"]),
        (SENTENCE[model.encoder.name], "next_sentence_logits", "next_sentence_labels", 1),
    ):
        if labels not in batch:
            continue
        logits = np.array(outputs[logits], np.float64)  # [B, P, V] or [B, 2]
        labels = batch[labels].reshape(logits.shape[:-1])
        weights = np.broadcast_to(weights, labels.shape)
        likely = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
        losses = np.log(np.exp(logits).sum(-1)) - likely
        right = logits.argmax(-1) == labels
        results[f"{name}_loss"] = (losses * weights).sum() / weights.sum()
        results[f"{name}_accuracy"] = (right * weights).sum() / weights.sum()
    results["loss"] = sum(value for name, value in results.items() if name.endswith("loss"))
    return results


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "batch_size, kind, record_format, devices",
    ((7, "albert", FORMAT, 1), slow(30, "bert", FORMAT, 1), (8, "bert", WITHOUT_LABELS, 2)),
    ids=("a part of the batch left", "one batch", "no sentence labels, two devices"),
)
def test_every_record_counts_once(tmp_path, batch_size, kind, record_format, devices):
    """Whatever the batches are, and with labels of sentences or without."""
    files, strategy = make_files(tmp_path, (9, 11), record_format), strategy_of(devices)
    model, options = make_model(strategy, kind=kind), {"record_format": record_format}
    results = make_evaluator(files, model, strategy, batch_size=batch_size, **options).run()
    assert results.pop("examples") == 20
    assert results == pytest.approx(plainly(model, files, record_format), rel=1e-4)
    assert len(results) == (5 if record_format.sentence_label else 3)
    evaluator = make_evaluator(files, model, strategy, max_batches=1, **options)
    assert evaluator.run()["examples"] == 8


@pytest.mark.usefixtures("eagerly")
def test_guesses_are_made_by_the_first_device(tmp_path):
    strategy, files = two_devices(), make_files(tmp_path, (9,))
    records = first_records(files, FORMAT, make_model().config, 2)
    shown = guesses_as_markdown(make_model(strategy), Pieces(), records)
    assert shown.count("| true |") == 2
    assert shown == guesses_as_markdown(make_model(), Pieces(), records)


@pytest.mark.usefixtures("eagerly")
def test_packed_rows_count_their_sequences(tmp_path):
    files = make_files(tmp_path, (9, 11), PACKED)
    evaluator = make_evaluator(files, record_format=PACKED)
    records = first_records(files, PACKED, evaluator.model.config, 100)
    sequences = sum(record["segment_index"].max() for record in records)
    assert 20 < sequences < 60
    assert evaluator.run()["examples"] == sequences


def test_compiles_once_and_reads_the_weights_anew(tmp_path, monkeypatch):
    """Three evaluations during a training: one trace; the same weights give the same numbers."""
    traces = []
    original = pretraining.loss_sums

    def counting(outputs, batch):
        traces.append(1)
        return original(outputs, batch)

    monkeypatch.setattr(pretraining, "loss_sums", counting)
    files = make_files(tmp_path, (20,))
    evaluator = make_evaluator(files)
    first = evaluator.run()
    count = len(traces)
    assert count > 0
    assert evaluator.run() == first
    kernel = evaluator.model.masked_lm.transform.kernel
    kernel.assign(2 * kernel)
    assert evaluator.run() != first
    assert len(traces) == count


@pytest.mark.usefixtures("eagerly")
def test_training_is_left_as_it_is(tmp_path):
    files = make_files(tmp_path, (20,))
    evaluator = make_evaluator(files)
    before = [np.array(v) for v in evaluator.model.variables]
    evaluator.run()
    records = first_records(files, FORMAT, evaluator.model.config, 2)
    guesses_as_markdown(evaluator.model, Pieces(), records)
    for value, variable in zip(before, evaluator.model.variables, strict=True):
        np.testing.assert_array_equal(value, variable)


@pytest.mark.usefixtures("eagerly")
def test_a_damaged_record_is_named(tmp_path):
    files = make_files(tmp_path, (20, 20))
    evaluator = make_evaluator(files)
    evaluator.run()
    flip_a_byte(files[1], 20, damaged=15)
    with pytest.raises(InputError, match=r"part-1.*after 15 good ones"):
        evaluator.run()


def test_results_as_lines(tmp_path):
    assert read_results(str(tmp_path)) == {}
    results = {"loss": 1 / 3, "examples": 20, "global_step": 8}
    path = write_results(str(tmp_path), results)
    with open(path, encoding="utf-8") as file:
        assert file.read() == "examples = 20\nglobal_step = 8\nloss = 0.3333333333333333\n"
    assert read_results(str(tmp_path)) == results
    numbers = (20, 1 / 3, 12345.678901)
    assert [as_shown("f1", each) for each in numbers] == ["20", "0.3333", "12345.6789"]
    # Given to --null_score_diff_threshold, -0.7869 would leave out the answer at the threshold.
    assert as_shown("eval_best_f1_thresh", -0.786896824836731) == "-0.786896824836731"
    (tmp_path / "eval_results.txt").write_bytes(b"loss = 1.0\nexamp\xffles = 3\n")
    with pytest.raises(InputError, match="eval_results.txt must hold lines"):
        read_results(str(tmp_path))


class Pieces(TokenizerInterface):
    """A tokenizer with a piece for every id of `record_files`."""

    def __init__(self):
        self._use_vocabulary({f"p{i}": i for i in range(60)}, b"")


WORDS = [*SPECIAL, "나", "##는", "학교", "##에", "갔", "##다", ".", "*", "|"]


@pytest.fixture
def tokenizer(tmp_path):
    return KoreanTokenizer(write_lines(tmp_path / "vocab.txt", WORDS))


def record(tokenizer, first, second, masked):
    """A record as it is in a file: `masked` gives the positions of what is [MASK] in it."""
    pieces = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    ids = np.array(tokenizer.convert_tokens_to_ids(pieces))
    hidden = np.isin(np.arange(len(ids)), masked)
    row = {
        "input_ids": np.where(hidden, tokenizer.mask_id, ids),
        "input_mask": [1] * len(ids),
        "segment_ids": np.arange(len(ids)) > len(first) + 1,
        "masked_lm_positions": masked,
        "masked_lm_ids": ids[masked],
        "masked_lm_weights": [1.0] * len(masked),
    }
    return as_stored(row, 16, 4)


def as_stored(row, length, places):
    sizes = {name: places if name.startswith("masked_lm") else length for name in row}
    return {name: np.array(padded(list(values), sizes[name])) for name, values in row.items()}


def page_of(model, tokenizer, row, **options):
    """What TensorBoard shows, entities resolved: the page, and its tables by rows and cells."""
    text = guesses_as_markdown(model, tokenizer, [row], **options)
    page = html.unescape(plugin_util.markdown_to_safe_html(text))
    page = page.replace("<strong>", "**").replace("</strong>", "**")
    rows = re.findall(r"<tr>\s*(.*?)\s*</tr>", page, re.DOTALL)
    return page, [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def test_guesses_beside_the_truth(tokenizer):
    row = record(tokenizer, ["나", "##는", "*", "학교", "##에"], ["갔", "##다", "."], [4, 5, 8])
    page, (header, *rows) = page_of(make_model(), tokenizer, row, count=3)
    assert "나는 * [**학교**][**에**]<br" in page and "갔[**다**] ." in page
    assert header == ["true", "guesses"]
    assert [true for true, _ in rows] == ["학교", "##에", "##다"]
    assert all(len(cell.split(", ")) == 3 for _, cell in rows)


def test_a_right_guess_is_bold(tokenizer):
    model = make_model()
    head = model.masked_lm.output_bias
    head.assign(100.0 * tf.one_hot(WORDS.index("학교"), head.shape[0]))
    row = record(tokenizer, ["나", "학교"], ["."], [1, 2])
    _, (_, (_, wrong), (_, right)) = page_of(model, tokenizer, row)
    assert wrong.startswith("학교 100 %, ") and right.startswith("**학교** 100 %, ")
    assert wrong.count("%") == 5


def test_guesses_see_the_whole_record(tokenizer):
    """Its second segment included, its padding not: as the model sees it in a batch."""
    model = make_model()
    row = record(tokenizer, ["나", "##는"], ["학교", "##에"], [2, 5])
    batch = {name: value[None].astype(np.int32) for name, value in row.items()}
    logits = np.array(model(batch, training=False)["masked_lm_logits"], np.float64)[0, :2, :14]
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    _, (_, *rows) = page_of(model, tokenizer, row, count=2)
    for (_, cell), each in zip(rows, probabilities, strict=True):
        best = np.argsort(-each)[:2]
        assert cell.replace("**", "").split(", ") == [
            f"{WORDS[i]} {100 * each[i]:.0f} %" for i in best
        ]


def packed(sequences):
    """What `record` made, one after the other in a row."""
    row = {name: [] for name in sequences[0]} | {"segment_index": [], "position_ids": []}
    for number, sequence in enumerate(sequences, 1):
        used, masked = sequence["input_mask"] > 0, sequence["masked_lm_weights"] > 0
        start = len(row["input_ids"])
        for name in ("input_ids", "input_mask", "segment_ids"):
            row[name].extend(sequence[name][used])
        for name in ("masked_lm_ids", "masked_lm_weights"):
            row[name].extend(sequence[name][masked])
        row["masked_lm_positions"].extend(sequence["masked_lm_positions"][masked] + start)
        row["segment_index"].extend([number] * used.sum())
        row["position_ids"].extend(range(used.sum()))
    return as_stored(row, 48, 12)


def test_sequences_of_a_packed_row_are_shown_as_if_alone(tokenizer):
    model = make_model()
    first = record(tokenizer, ["나", "##는"], ["학교", "##에"], [2, 5])
    nothing = record(tokenizer, ["갔", "##다"], ["."], [])
    second = record(tokenizer, ["나"], ["갔", "##다", "."], [1, 3, 4])
    third = record(tokenizer, ["학교", "##에", "갔", "##다"], ["."], [2])
    row, other = packed([first, nothing, second]), packed([third])
    apart = guesses_as_markdown(model, tokenizer, [first, nothing, second, third])
    assert apart.count("| true |") == 3
    assert guesses_as_markdown(model, tokenizer, [row, other, packed([nothing])]) == apart
    # As many sequences as there are records.
    two = guesses_as_markdown(model, tokenizer, [first, second])
    assert guesses_as_markdown(model, tokenizer, [row, other]) == two
    assert guesses_as_markdown(model, tokenizer, [nothing, packed([nothing] * 2)]) == ""


NO_PREFIX, MARKER = {"continuation_prefix": ""}, {"word_end_marker": "_"}


@pytest.mark.parametrize(
    "switches, pieces, text",
    (
        ({}, ["나", "##는", "갔", "##다", "."], "나는 갔다 ."),
        ({**NO_PREFIX, **MARKER}, ["나", "는_", "갔", "다_"], "나는 갔다"),
        (MARKER, ["나", "##는_", "갔", "##다_"], "나는 갔다"),
        (NO_PREFIX, ["나", "는", "갔", "다"], "나 는 갔 다"),
    ),
)
def test_words_are_put_together_as_the_tokenizer_marks_them(tmp_path, switches, pieces, text):
    tokenizer = KoreanTokenizer(write_pieces(tmp_path, pieces), **switches)
    row = record(tokenizer, pieces, ["나"], [len(pieces) + 2])
    page, _ = page_of(make_model(), tokenizer, row)
    assert page.startswith(f"<p>{text}<br")


def test_sentencepiece_marks_where_a_word_begins():
    class SentencePieces(TokenizerInterface):
        def __init__(self):
            pieces = [*WORDS[:5], "▁나", "는", "▁갔", "다", "▁"]
            self._use_vocabulary({piece: i for i, piece in enumerate(pieces)}, b"")

    tokenizer = SentencePieces()
    row = record(tokenizer, ["▁나", "는", "▁갔", "다"], ["▁나"], [3])
    page, rows = page_of(make_model(), tokenizer, row)
    assert page.startswith("<p>나는 [**갔**]다<br") and rows[1][0] == "▁갔"
