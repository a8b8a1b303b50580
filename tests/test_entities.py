"""Named entities as run_ner writes and measures them, without a model: logits by hand."""

from pathlib import Path

import numpy as np
import pytest
from classifier_jobs import Job
from jobs import one_line
from made_tokenizers import SPECIAL

from finetuning.entities import EntityTagging
from finetuning.ner_files import FORMATS, Sentence, TaggingTask, tags_of_kinds
from run_scripts import ner
from tokenization import KoreanTokenizer

TAGS = tags_of_kinds("AB")  # B-A, I-A, B-B, I-B, O


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, "김철", "수"]) + "\n", encoding="utf-8")
    task = TaggingTask(FORMATS["conll"], TAGS, {"dev": True})
    return EntityTagging(task, KoreanTokenizer(path), 16)


def sentence(text, tags):
    units = tuple((i, i + 1) for i, character in enumerate(text) if character != " ")
    return Sentence("0", text, units, tuple(tags.split()))


def logits(shares):
    """The logits of a window whose pieces have these probabilities, [CLS] and [SEP] around."""
    rows = np.log(np.array(shares))
    return {"logits": [np.pad(rows, ((1, 1), (0, 0)))]}


def test_the_probability_is_that_of_the_decoded_tag(problem, tmp_path):
    """I-A alone is the most likely for 수, but nothing of A has begun before it."""
    examples = problem.encode([sentence("김철 수", "B-B I-B O")], training=False)
    outputs = logits([[0.1, 0.1, 0.3, 0.1, 0.4], [0.05, 0.5, 0.05, 0.1, 0.3]])
    ((tags, sure),) = problem.predictions(examples, outputs)
    assert tags == ["O", "O", "O"]
    np.testing.assert_allclose(sure, [0.4, 0.4, 0.3])
    paths = problem.write_predictions(str(tmp_path), "dev", examples, outputs)
    rows = ("## 0", "김\tB-B\tO\t0.400000", "철\tI-B\tO\t0.400000", "수\tO\tO\t0.300000", "\n")
    assert Path(paths[1]).read_text(encoding="utf-8") == "\n".join(rows)


@pytest.mark.filterwarnings("error")
def test_sentences_without_an_entity_and_without_a_piece(problem):
    pytest.importorskip("seqeval")
    examples = problem.encode([sentence("김철 수", "O O O"), sentence("\u200b", "O")], False)
    outputs = logits([[0.1, 0.1, 0.1, 0.1, 0.6]] * 2)
    results = problem.measure(None, examples, outputs)
    assert results["loss"] == pytest.approx(-np.log(0.6))
    expected = {"entity_f1": 0.0, "entity_macro_f1": 0.0, "character_macro_f1": 1.0}
    assert {name: results[name] for name in expected} == expected == problem.baseline(examples)
    problem.illustrations(None, examples, outputs)


def test_a_file_without_a_piece_is_one_line(tmp_path, capsys):
    job = Job(tmp_path)
    job.data.mkdir()
    for name in ("train", "dev"):
        (job.data / f"{name}.txt").write_text("\u200b B-A\n", encoding="utf-8")
    flags = {"bucket_boundaries": "auto", "task_name": "conll"}
    argv = ["run_ner.py", *job.argv(**flags)[1:]]
    assert ner.main(argv) == 1
    assert "train must hold an example that the tokenizer makes pieces of" in one_line(capsys)
