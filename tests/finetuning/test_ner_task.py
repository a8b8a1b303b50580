"""Named entities as run_ner writes and measures them, without a model: logits by hand."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from finetuning.ner.data import FORMATS, NerDataset, Sentence, tags_of_kinds, untagged_sentence
from finetuning.ner.task import NamedEntityRecognition, entities, kind_report
from run_scripts import ner
from tests.support.programs import ClassifierJob, one_line
from tests.support.vocabularies import write_pieces
from tokenization import KoreanTokenizer

TAGS = tags_of_kinds("AB")  # B-A, I-A, B-B, I-B, O


@pytest.fixture
def task(tmp_path):
    tokenizer = KoreanTokenizer(write_pieces(tmp_path, ["김철", "수"]))
    return NamedEntityRecognition(NerDataset(FORMATS["conll"], TAGS, {"dev": True}), tokenizer, 16)


def sentence(text, tags):
    units = tuple((i, i + 1) for i, character in enumerate(text) if character != " ")
    return Sentence("0", text, units, tuple(tags.split()))


def logits(shares):
    """The logits of a window whose pieces have these probabilities, [CLS] and [SEP] around."""
    rows = np.log(np.array(shares))
    return {"logits": [np.pad(rows, ((1, 1), (0, 0)))]}


def test_the_probability_is_that_of_the_decoded_tag(task, tmp_path):
    """I-A alone is the most likely for 수, but nothing of A has begun before it."""
    examples = task.encode([sentence("김철 수", "B-B I-B O")], training=False)
    outputs = logits([[0.1, 0.1, 0.3, 0.1, 0.4], [0.05, 0.5, 0.05, 0.1, 0.3]])
    ((tags, sure),) = task.predictions(examples, outputs)
    assert tags == ["O", "O", "O"]
    np.testing.assert_allclose(sure, [0.4, 0.4, 0.3])
    paths = task.write_predictions(str(tmp_path), "dev", examples, outputs)
    rows = ("## 0", "김\tB-B\tO\t0.400000", "철\tI-B\tO\t0.400000", "수\tO\tO\t0.300000", "\n")
    assert Path(paths[1]).read_text(encoding="utf-8") == "\n".join(rows)


@pytest.mark.parametrize("white", ("\t", "\r", "\u2028", "\u3000"))
def test_white_space_that_is_a_unit_keeps_its_line(task, white, tmp_path):
    """Where units are characters, a tab between words of plain text is one."""
    klue = task.dataset._replace(file_format=FORMATS["klue-ner"])
    task = dataclasses.replace(task, dataset=klue)
    given = untagged_sentence("0", f"김철{white}수", klue.file_format)
    examples = task.encode([given], training=False)
    outputs = logits([[0.1, 0.1, 0.1, 0.1, 0.6]] * 2)
    path = task.write_predictions(str(tmp_path), "new", examples, outputs)[1]
    rows = [line.split("\t") for line in Path(path).read_bytes().decode().split("\n")[1:5]]
    assert [row[:2] for row in rows] == [[unit, "O"] for unit in "김철 수"]
    assert {len(row) for row in rows} == {3}


@pytest.mark.parametrize("kinds, drawn", ((14, {"confusion"}), (15, set())))
def test_many_tags_are_not_drawn(task, kinds, drawn):
    """Of 100 kinds a plot took 4 GB."""
    tags = tags_of_kinds(map(str, range(kinds)))
    task = dataclasses.replace(task, dataset=task.dataset._replace(tags=tags))
    examples = task.encode([sentence("김철 수", "O O O")], False)
    outputs = {"logits": [np.zeros((4, len(tags)))]}
    assert set(task.illustrations(None, examples, outputs).images) == drawn


@pytest.mark.filterwarnings("error")
def test_sentences_without_an_entity_and_without_a_piece(task):
    pytest.importorskip("sklearn")
    examples = task.encode([sentence("김철 수", "O O O"), sentence("\u200b", "O")], False)
    outputs = logits([[0.1, 0.1, 0.1, 0.1, 0.6]] * 2)
    results = task.measure(None, examples, outputs)
    assert results["loss"] == pytest.approx(-np.log(0.6))
    expected = {"entity_f1": 0.0, "entity_macro_f1": 0.0, "character_macro_f1": 1.0}
    for found in (results, task.baseline(examples)):
        assert {name: found[name] for name in expected} == expected
    task.illustrations(None, examples, outputs)


def test_a_file_without_a_piece_is_one_line(tmp_path, capsys):
    job = ClassifierJob(tmp_path)
    job.data.mkdir()
    for name in ("train", "dev"):
        (job.data / f"{name}.txt").write_text("\u200b B-A\n\n" * 2, encoding="utf-8")
    assert ner.main(job.argv(bucket_boundaries="auto", task_name="conll")) == 1
    assert "train must hold an example that gives tokens" in one_line(capsys)


def test_entities_are_those_of_strict_iob2():
    """For all tags that there may be, valid or not: as seqeval finds them."""
    scheme = pytest.importorskip("seqeval.scheme")
    for tags in itertools.product(TAGS, repeat=4):
        (expected,) = scheme.Entities([list(tags)], scheme.IOB2).entities
        assert entities(tags) == [(e.start, e.end - 1, e.tag) for e in expected]


def test_a_slip_of_klue_is_no_entity(task, tmp_path):
    """As KLUE's file has it: the space began the entity, and is no unit."""
    pytest.importorskip("sklearn")
    tags = FORMATS["klue-ner"].tags
    dataset = NerDataset(FORMATS["klue-ner"], tags, {"dev": True})
    task = NamedEntityRecognition(dataset, task.tokenizer, 16)
    examples = task.encode([sentence("김철 수", "B-PS I-PS I-QT")], training=False)
    one_hot = np.full((2, len(tags)), 0.01)
    one_hot[0, tags.index("B-PS")] = one_hot[1, tags.index("B-QT")] = 1 - 0.01 * (len(tags) - 1)
    outputs = logits(one_hot)
    assert task.predictions(examples, outputs)[0][0] == ["B-PS", "I-PS", "B-QT"]
    results = task.measure(None, examples, outputs)
    # PS is right; QT is found, but is not there.
    assert (results["entity_f1"], results["entity_macro_f1"]) == (pytest.approx(2 / 3), 0.5)
    shown = task.illustrations(None, examples, outputs).texts["most_wrong"]
    assert "| 김철 PS | 김철 PS, 수 QT |" in shown


def test_the_sentence_with_most_wrong_tags_is_the_first_mistake(task):
    given = [sentence("수", "B-A"), sentence("김철", "O O"), sentence("김철 수", "B-A I-A B-B")]
    examples = task.encode(given, training=False)
    nothing = [0.1, 0.1, 0.1, 0.1, 0.6]
    found = [logits([nothing] * pieces)["logits"][0] for pieces in (1, 1, 2)]
    rows = task.mistakes(None, examples, {"logits": found}).rows
    assert [text for text, _, _ in rows] == ["김철 수", "수"]


def test_figures_of_each_kind():
    """B is found once of twice, with one false one; A once, with a wrong end."""
    true = [["B-A", "I-A", "O", "B-B"], ["B-B", "O", "O", "O"]]
    predicted = [["B-A", "O", "O", "B-B"], ["O", "O", "B-B", "O"]]
    report = kind_report(TAGS, true, predicted)
    assert report.labels == ("A", "B") and report.support.tolist() == [1, 2]
    assert report.precision.tolist() == report.recall.tolist() == report.f1.tolist() == [0, 0.5]
