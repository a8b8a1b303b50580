"""Named entities as run_ner writes and measures them, without a model: logits by hand."""

from pathlib import Path

import numpy as np
import pytest
from made_tokenizers import SPECIAL

from finetuning.entities import EntityTagging
from finetuning.ner_files import FORMATS, Sentence, TaggingTask, tags_of_kinds
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
