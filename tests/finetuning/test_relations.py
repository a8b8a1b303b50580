"""KLUE-RE: marked entities, rows that keep both of them, its two metrics."""

import json

import numpy as np
import pytest

from finetuning.classification.head import SequenceClassifier
from finetuning.classification.task import Classification
from finetuning.datasets import DATASETS
from finetuning.examples import Examples
from finetuning.inputs import encode_around, encode_pair
from finetuning.metrics import score
from finetuning.readers import Entity, Example, mark_entities, read_split
from tests.support.crosses import slow
from tests.support.programs import ClassifierJob, one_line, results
from tests.support.refusals import refused
from tests.support.task_data import read_table
from tests.support.tiny_models import tiny_model, without_graphs
from tests.support.vocabularies import write_pieces
from tokenization import KoreanTokenizer

KLUE_RE = DATASETS["klue-re"]

# The first example of KLUE-RE, as its dataset card on Hugging Face shows it.
SENTENCE = "〈Something〉는 조지 해리슨이 쓰고 비틀즈가 1969년 앨범 《Abbey Road》에 담은 노래다."
BEATLES = {"word": "비틀즈", "start_idx": 24, "end_idx": 26, "type": "ORG"}
HARRISON = {"word": "조지 해리슨", "start_idx": 13, "end_idx": 18, "type": "PER"}
EXAMPLE = {
    "guid": "klue-re-v1_train_00000", "sentence": SENTENCE, "subject_entity": BEATLES,
    "object_entity": HARRISON, "label": "no_relation", "source": "wikipedia",
}  # fmt: skip


def write(folder, *entries, split="train"):
    path = folder / f"klue-re-v1.1_{split}.json"
    path.write_text(json.dumps(entries, ensure_ascii=False, indent=2), encoding="utf-8")
    return path


def test_the_published_form(tmp_path):
    """A space at the sentence's beginning does not shift the entities."""
    title = {**EXAMPLE, "guid": "g", "sentence": f" {SENTENCE}", "label": "per:title"}
    for name in ("subject_entity", "object_entity"):
        places = {key: EXAMPLE[name][key] + 1 for key in ("start_idx", "end_idx")}
        title[name] = EXAMPLE[name] | places
    write(tmp_path, EXAMPLE, title)
    (example, spaced), left_out = read_split(KLUE_RE, "train", str(tmp_path))
    assert (example.id, example.second, example.label) == ("klue-re-v1_train_00000", None, 0)
    assert example.text == (
        "〈Something〉는 # ^ 인물 ^ 조지 해리슨#이 쓰고 @ * 단체 * 비틀즈@가 1969년 앨범 "
        "《Abbey Road》에 담은 노래다."
    )
    assert (spaced.text, spaced.label) == (f" {example.text}", 29)
    for each in (example, spaced):
        kept = [each.text[start:end] for start, end in each.kept]
        assert kept == ["@ * 단체 * 비틀즈@", "# ^ 인물 ^ 조지 해리슨#"]
    assert left_out == {} and KLUE_RE.splits == {"train": True, "dev": True}


@pytest.mark.parametrize(
    "subject, other, marked",
    (
        ((0, 0), (1, 1), "@ * 단체 * A@# ^ 인물 ^ B#CD"),
        ((1, 1), (0, 0), "# ^ 인물 ^ A#@ * 단체 * B@CD"),
        ((0, 3), (0, 1), "@ * 단체 * # ^ 인물 ^ AB#CD@"),
        ((2, 3), (0, 3), "# ^ 인물 ^ AB@ * 단체 * CD@#"),
        ((0, 3), (0, 3), "@ * 단체 * # ^ 인물 ^ ABCD#@"),
        ((0, 2), (1, 3), "@ * 단체 * A# ^ 인물 ^ BC@D#"),
    ),
)
def test_entities_may_touch_and_overlap(subject, other, marked):
    entities = Entity(*subject, "ORG"), Entity(*other, "PER")
    text, spans = mark_entities("ABCD", entities, "here")
    assert text == marked
    for (start, end), first, last in zip(spans, "@#", "@#", strict=True):
        assert text[start] == first and text[end - 1] == last


@pytest.mark.parametrize(
    "changes, words",
    (
        ({"end_idx": len(SENTENCE)}, (f"inside the {len(SENTENCE)} characters", "24")),
        ({"start_idx": 27}, ("must be inside", "start_idx 27, end_idx 26")),
        ({"start_idx": -1}, ("must be inside", "-1")),
        ({"start_idx": "24"}, ("subject_entity must be whole numbers", "'24'")),
        ({"end_idx": True}, ("must be whole numbers", "True")),
        ({"type": "ANIMAL"}, ("one of PER, ORG, LOC, DAT, POH, NOH", "'ANIMAL'")),
        (None, ("must have 'subject_entity.start_idx'",)),
    ),
)
def test_broken_entities(tmp_path, changes, words):
    entity = {"word": "a"} if changes is None else {**BEATLES, **changes}
    path = write(tmp_path, EXAMPLE, {**EXAMPLE, "subject_entity": entity})
    with refused(f"{path} entry 2", *words):
        read_split(KLUE_RE, "train", str(tmp_path))


# === Long sentences ===

PIECES = (*"@*#^", "단체", "인물", "비틀즈", "해리슨")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    return KoreanTokenizer(write_pieces(folder, (*PIECES, *"가나다라마바사아")))


def long_example():
    """Seven words before the object, three between the entities, one after the subject."""
    words = [*"가나다라마바사", "해리슨", *"가나다", "비틀즈", "아"]
    text = " ".join(words)
    entities = [
        Entity(text.index(word), text.index(word) + 2, kind)
        for word, kind in (("비틀즈", "ORG"), ("해리슨", "PER"))
    ]
    marked, kept = mark_entities(text, entities, "here")
    return Example("a", marked, None, 0, kept)


ALL = "가 나 다 라 마 바 사 # ^ 인물 ^ 해리슨 # 가 나 다 @ * 단체 * 비틀즈 @ 아"


@pytest.mark.parametrize(
    "max_length, pieces",
    (
        (40, ALL),
        (25, ALL),
        (24, ALL.removeprefix("가 ")),
        (18, "사 # ^ 인물 ^ 해리슨 # 가 다 @ * 단체 * 비틀즈 @ 아"),
        (14, "# ^ 인물 ^ 해리슨 # @ * 단체 * 비틀즈 @"),
    ),
)
def test_both_entities_stay(tokenizer, max_length, pieces):
    """The farthest pieces go first, then those between the entities."""
    row = encode_around(tokenizer, long_example(), max_length)
    assert not row.segment_ids.any() and row.segment_ids.shape == row.ids.shape
    found = " ".join(tokenizer.convert_ids_to_tokens(row.ids.tolist()))
    assert found == f"[CLS] {pieces} [SEP]"
    with refused("--max_seq_length=13, 14 tokens in a"):
        encode_around(tokenizer, long_example(), 13)


def test_the_task_shortens_only_what_is_too_long(tokenizer):
    example = long_example()
    task = Classification(KLUE_RE, tokenizer, 18)
    short = example._replace(text="가 비틀즈", kept=((0, 1),))
    full = " ".join("가나다라마바사아가나다라마바사아")
    plain = [Example("b", f"{full} 나", None, 0), Example("c", full, None, 0)]
    examples = task.encode([example, short, *plain], training=True)
    batch = examples.make_batch(np.arange(4), 18)
    assert list(examples.lengths) == [18, 4, 18, 18]
    row = encode_around(tokenizer, example, 18)
    assert batch["input_ids"][0].tolist() == row.ids.tolist()
    for number, other in enumerate((short, *plain), 1):
        expected = encode_pair(tokenizer, other.text, None, 18).ids
        assert batch["input_ids"][number, : len(expected)].tolist() == expected.tolist()


# === The program ===


def relation(number):
    """The subject's type says which of three relations it is; the object is far away."""
    kind, label = (("PER", "per:title"), ("ORG", "org:product"), ("LOC", "no_relation"))[number % 3]
    sentence = "비틀즈 " + "가 나 다 라 " * (number % 5) + "해리슨 마"
    start = sentence.index("해리슨")
    other = {"word": "해리슨", "start_idx": start, "end_idx": start + 2, "type": "POH"}
    subject = {"word": "비틀즈", "start_idx": 0, "end_idx": 2, "type": kind}
    pair = {"subject_entity": subject, "object_entity": other}
    return {"guid": f"g{number}", "sentence": sentence, **pair, "label": label}


@pytest.mark.parametrize("steps", (slow(60), 1), ids=("learned", "run"))
def test_the_program_learns_relations(tmp_path, capsys, steps):
    """Rows are shorter than the longest sentences, whose objects are seen all the same."""
    job = ClassifierJob(tmp_path)
    write_pieces(tmp_path, (*PIECES, "장소", "기타", *"가나다라마"))
    folder = tmp_path / "data" / "klue-re-v1.1"
    folder.mkdir(parents=True)
    write(folder, *map(relation, range(48)))
    write(folder, *map(relation, range(48, 63)), split="dev")
    flags = {"task_name": "klue-re", "tokenizer": "korean", "do_eval": True, "do_predict": True}
    with without_graphs(steps == 1):
        assert job.run(**flags, train_step=steps, max_seq_length=20) == 0
    found = results(job.output)
    if steps > 1:
        assert found["eval_relation_micro_f1"] > 0.3 > found["baseline_relation_micro_f1"]
        assert found["eval_auprc"] > 0.6
    assert "eval_auprc" in found and "baseline_auprc" not in found
    header, *rows = read_table(job.output / "predictions_dev.tsv")
    assert header[4:] == list(KLUE_RE.labels) and rows[0][1].startswith("@ * 인물 * 비틀즈@")
    unset = dict.fromkeys(("data_dir", "task_name", "vocab_file"))
    flags = {**unset, "do_train": False, "do_predict": True}
    assert job.run(**flags, predict_file=folder / "klue-re-v1.1_dev.json") == 0
    predicted = read_table(job.output / "predictions_klue-re-v1.1_dev.json.tsv")[1:]
    assert [row[1] for row in predicted] == [row[1] for row in rows]
    new = tmp_path / "new.csv"
    new.write_text("sentence,subject_entity,object_entity\n비틀즈는 썼다,비틀즈,\n", "utf-8")
    capsys.readouterr()
    assert job.run(**flags, predict_file=new) == 1
    assert "--predict_file of --task_name=klue-re must be JSON" in one_line(capsys)


# === Metrics ===

sklearn_metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture(params=range(3))
def random_relations(request):
    """Labels of all 30 classes, one in three no_relation, and probabilities that often fit."""
    rng = np.random.default_rng(request.param)
    labels = np.concatenate([np.arange(30), rng.integers(1, 30, 170), np.zeros(100, int)])
    logits = rng.normal(size=(300, 30)) + 2 * np.eye(30)[labels]
    shares = np.exp(logits)
    return labels, shares / shares.sum(axis=1, keepdims=True)


def area(right, probabilities):
    """Under the curve of precision by recall."""
    precision, recall, _ = sklearn_metrics.precision_recall_curve(right, probabilities)
    return sklearn_metrics.auc(recall, precision)


def test_metrics_of_klue(random_relations):
    """Against scikit-learn, called as klue_re_micro_f1 and klue_re_auprc of KLUE-baseline do."""
    labels, probabilities = random_relations
    predictions = probabilities.argmax(axis=1)
    found = score(KLUE_RE.metrics, labels, predictions, probabilities)
    assert KLUE_RE.labels.index("no_relation") == 0
    options = {"average": "micro", "labels": range(1, 30)}
    micro_f1 = sklearn_metrics.f1_score(labels, predictions, **options)
    areas = [area(labels == number, probabilities[:, number]) for number in range(30)]
    expected = {"relation_micro_f1": micro_f1, "auprc": np.mean(areas)}
    assert found == pytest.approx(expected, rel=1e-12)
    # The task measures the same of logits; a constant guess has no probabilities to rank by.
    task, raw = Classification(KLUE_RE, None, 16), [Example("", "", None, n) for n in labels]
    shifted = np.log(probabilities) + labels[:, None]  # another order among the rows
    examples, outputs = Examples(np.ones(300), None, [], raw), {"logits": [*shifted]}
    model = SequenceClassifier(tiny_model().encoder, 30)
    measured = task.measure(model, examples, outputs)
    assert measured.pop("loss") == pytest.approx(sklearn_metrics.log_loss(labels, probabilities))
    assert measured == pytest.approx(expected, rel=1e-9)
    assert [*task.baseline(examples)] == ["relation_micro_f1"]
    assert 0.3 < found["relation_micro_f1"] < 0.95 and 0.3 < found["auprc"] < 0.95


def test_classes_without_an_example_do_not_count():
    labels = np.array([0, 1, 1])
    shares = np.array([[0.5, 0.4, 0.1], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])
    found = score(KLUE_RE.metrics, labels, shares.argmax(axis=1), shares)
    # Class 0: ranks 2 of 3. Class 1: ranks 1 and 3 of 3.
    areas = [(1 / 2 + 0) / 2 + 0.0, 1 / 2 + (1 / 2 + 2 / 3) / 4]
    assert [area(labels == n, shares[:, n]) for n in (0, 1)] == pytest.approx(areas)
    assert found == pytest.approx({"relation_micro_f1": 2 / 3, "auprc": np.mean(areas)})
    assert score(("relation_micro_f1",), labels * 0, labels * 0) == {"relation_micro_f1": 0.0}
