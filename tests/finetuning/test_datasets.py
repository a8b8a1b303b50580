"""Small files in every task's published format; one line of error for broken ones."""

import json

import pytest

from finetuning.datasets import DATASETS
from finetuning.metrics import METRICS, PROBABILITY_METRICS
from finetuning.readers import STRAY_TAB, read_split
from tests.support.paths import SHARED
from tests.support.refusals import refused


def table(text):
    return text.replace("|", "\t") + "\n"


def objects(*entries):
    return json.dumps(list(entries), ensure_ascii=False, indent=4)


MNLI = "index|promptID|pairID|genre|parse1|parse2|parse3|parse4|sentence1|sentence2"
MNLI_DEV = MNLI + "|label1|label2|label3|label4|label5|gold_label\n4|p|q|g|b|b|p|p|A|B|n|n|n|n|n|"
XNLI = "language|gold_label|parse1|parse2|parse3|parse4|sentence1|sentence2|promptID|pairID|genre"
STSB = "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2"
KORSTS = "genre|filename|year|id|score|sentence1|sentence2"
KORNLI = "sentence1|sentence2|gold_label"
HATE = "comments|contain_gender_bias|bias|hate"
NSMC = "id|document|label"
STS = {"label": 4.9, "real-label": 4.857142857142857, "binary-label": 1}
RELATION = {
    "guid": "g2", "sentence": "나는 서울.", "label": "per:title",
    "subject_entity": {"word": "나", "start_idx": 0, "end_idx": 0, "type": "PER"},
    "object_entity": {"word": "서울", "start_idx": 3, "end_idx": 4, "type": "LOC"},
}  # fmt: skip

# Task and split, file and its content -> the only example's id (None: file and line), text, second
# sentence, label; what was left out.
PUBLISHED = (
    ("cola train", "train.tsv", "gj04|0|*|Dog a barks.", (None, "Dog a barks.", None, 0)),
    ("cola test", "test.tsv", "index|sentence\n7|Dogs bark.", ("7", "Dogs bark.", None, None)),
    ("sst-2 train", "train.tsv", 'sentence|label\na "gem" |1', (None, 'a "gem"', None, 1)),
    ("sst-2 test", "test.tsv", "index|sentence\n0|dull", ("0", "dull", None, None)),
    ("mrpc train", "train.tsv",
     '\ufeffQuality|#1 ID|#2 ID|#1 String|#2 String\n1|70|71|"A|A\r', (None, '"A', "A", 1)),
    ("mrpc test", "test.tsv", "index|#1 ID|#2 ID|#1 String|#2 String\n0|1|2|A|B",
     ("0", "A", "B", None)),
    ("sts-b dev", "dev.tsv", f"{STSB}|score\n0|m|f|2012|1|n|n|A|B|4.750", ("0", "A", "B", 4.75)),
    ("sts-b test", "test.tsv", f"{STSB}\n0|m|f|2012|1|n|n|A|B", ("0", "A", "B", None)),
    ("qqp train", "train.tsv",
     "id|qid1|qid2|question1|question2|is_duplicate\n6|1|2|cut\n5|1|2|A?|B?|0",
     ("5", "A?", "B?", 0), {"short": 1}),
    ("qqp test", "test.tsv", "id|question1|question2\n0|A?|B?", ("0", "A?", "B?", None),
     {"short": 0}),
    ("mnli train", "train.tsv", f"{MNLI}|label1|gold_label\n0|p|q|g|b|b|p|p|A|B|n|neutral",
     ("0", "A", "B", 2)),
    ("mnli dev_mismatched", "dev_mismatched.tsv", f"{MNLI_DEV}entailment", ("4", "A", "B", 1)),
    ("mnli test", "test_matched.tsv", f"{MNLI}\n0|p|q|g|b|b|p|p|A|B", ("0", "A", "B", None)),
    ("mismnli dev", "dev_mismatched.tsv", f"{MNLI_DEV}neutral", ("4", "A", "B", 2)),
    ("qnli train", "train.tsv", "index|question|sentence|label\n3|Q?|S|entailment",
     ("3", "Q?", "S", 0)),
    ("qnli test", "test.tsv", "index|question|sentence\n0|Q?|S", ("0", "Q?", "S", None)),
    ("rte dev", "dev.tsv", "index|sentence1|sentence2|label\n3|A|B|not_entailment",
     ("3", "A", "B", 1)),
    ("wnli train", "train.tsv", "index|sentence1|sentence2|label\n3|A|B|1", ("3", "A", "B", 1)),
    ("xnli train", "multinli/multinli.train.zh.tsv", "premise|hypo|label\nA|B|contradictory",
     (None, "A", "B", 0)),
    ("xnli dev", "xnli.dev.tsv",
     f"{XNLI}\nar|neutral|b|b|p|p|X|Y|1|10|g\nzh|neutral|b|b|p|p|A|B|1|11|g", ("11", "A", "B", 2)),
    ("nsmc train", "ratings_train.txt", f"{NSMC}\n100||0", ("100", "", None, 0)),
    ("nsmc test", "ratings_test.txt", f"{NSMC}\n98|별로|0", ("98", "별로", None, 0)),
    ("klue-tc dev", "ynat-v1.1_dev.json",
     objects({"guid": "ynat-v1_dev_00000", "title": "제목", "label": "세계", "url": "u"}),
     ("ynat-v1_dev_00000", "제목", None, 4)),
    ("klue-nli train", "klue-nli-v1.1_train.json",
     objects({"guid": "g0", "premise": "A", "hypothesis": "B", "gold_label": "neutral"}),
     ("g0", "A", "B", 1)),
    ("klue-sts dev", "klue-sts-v1.1_dev.json",
     objects({"guid": "g1", "sentence1": "A", "sentence2": "B", "labels": STS}),
     ("g1", "A", "B", STS["real-label"])),
    ("klue-re dev", "klue-re-v1.1_dev.json", objects(RELATION),
     ("g2", "@ * 인물 * 나@는 # ^ 장소 ^ 서울#.", None, 29)),
    ("kornli dev", "xnli.dev.ko.tsv", f"{KORNLI}\nA|B|contradiction", (None, "A", "B", 0)),
    ("korsts train", "sts-train.tsv", f"{KORSTS}\nm|M|2012|1|5.000|A|B", (None, "A", "B", 5.0)),
    ("paws-x test", "test_2k.tsv", "id|sentence1|sentence2|label\n1|NS|B|0\n3|A|NS|0\n2|A|B|1",
     ("2", "A", "B", 1), {"NS": 2}),
    ("3i4k train", "fci_train_val.txt", "6|되면\r", (None, "되면", None, 6)),
    ("3i4k test", "fci_test.txt", "3|오\r", (None, "오", None, 3)),
    ("hate-speech train", "train.tsv", f"{HATE}\n글|False|none|hate", (None, "글", None, 2)),
    ("hate-speech test", "test.no_label.tsv", "comments\n글", (None, "글", None, None)),
    ("hate-bias dev", "dev.tsv", f"{HATE}\n글|True|gender|none", (None, "글", None, 1)),
)  # fmt: skip


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_every_task_has_a_small_file():
    assert {name.split()[0] for name, *_ in PUBLISHED} == set(DATASETS)


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case[0])
def test_published_format(tmp_path, case):
    """In the task's own folder and in one beside those of other tasks."""
    where, file, content, (number, *rest), *left_out = case
    name, split = where.split()
    content = content if file.endswith(".json") else table(content)
    path = write(tmp_path / DATASETS[name].folder, file, content)
    for folder in (tmp_path, tmp_path / DATASETS[name].folder):
        (example,), found = read_split(DATASETS[name], split, str(folder))
        assert example[1:4] == tuple(rest) and type(example.label) is type(rest[-1])
        assert example.id == (number or f"{path} line {content.count(chr(10))}")
        assert [found] == (left_out or [{}])


def test_the_training_data_of_kornli_is_two_files(tmp_path):
    """The second of which has a line with a stray tab, which is left out."""
    names = ["snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"]
    for name, row in zip(names, ("A|B|neutral", "A|B|C|neutral"), strict=True):
        write(tmp_path, name, table(f"{KORNLI}\n{row}\n{name}|B|neutral"))
    examples, left_out = read_split(DATASETS["kornli"], "train", str(tmp_path))
    assert [e.text for e in examples] == ["A", *names] and left_out == {STRAY_TAB: 1}


@pytest.mark.parametrize("name", DATASETS)
def test_a_row_of_the_table_makes_sense(name):
    dataset = DATASETS[name]
    # The first is also that of the baseline, which has no probabilities.
    assert dataset.metrics[0] in METRICS
    assert set(dataset.metrics) <= {*METRICS, *PROBABILITY_METRICS}
    assert len(set(dataset.labels)) == len(dataset.labels) != 1
    assert set(dataset.aliases.values()) <= set(dataset.labels)
    regression = {"pearson", "spearman", "paraphrase_f1"}
    assert bool(set(dataset.metrics) & regression) == (not dataset.labels)
    assert dataset.sources["train"].label is not None
    assert all(source.files for source in dataset.sources.values())


@pytest.mark.parametrize(
    "name, content, words",
    (
        ("nsmc", "", ("ratings_train.txt", "must not be empty")),
        ("nsmc", table(NSMC), ("ratings_train.txt", "must hold an example")),
        ("nsmc", "\ufeff", ("ratings_train.txt", "must hold a header", "none")),
        ("nsmc", table("id|text|label\n1|a|0"), ("line 1", "document", "id, text, label")),
        ("nsmc", table(f"{NSMC}\n1|a|0\n2|b"), ("line 3", "at least 3 columns", "2")),
        ("nsmc", table(f"{NSMC}\n1|a|2"), ("line 2", "one of 0, 1", "'2'")),
        ("nsmc", table(NSMC).encode() + b"1\ta\xff\t0\n", ("line 2", "UTF-8", "0xff")),
        ("3i4k", "0\ta\nb\n", ("fci_train_val.txt line 2", "at least 2 columns", "1")),
        ("korsts", table(f"{KORSTS}\nm|M|2012|1|nan|A|B"), ("line 2", "a number", "'nan'")),
        ("klue-nli", "[{", ("train.json", "must hold JSON")),
        ("klue-nli", '{"a": 1}\n{"a": 2}\n', ("[...]; lines of objects are .jsonl", '{"a": 1}')),
        ("klue-nli", objects({"premise": "A"}), ("entry 1", "'hypothesis'", "premise")),
        ("klue-sts", objects({"sentence1": "A", "sentence2": "B", "labels": 3}),
         ("entry 1", "'labels.real-label'")),
        ("klue-tc", objects({"guid": "g", "title": None, "label": "세계"}),
         ("entry 1", "a string", "None")),
    ),
)  # fmt: skip
def test_what_is_broken(tmp_path, name, content, words):
    path = tmp_path / DATASETS[name].sources["train"].files[0]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused(*words):
        read_split(DATASETS[name], "train", str(tmp_path))
    path.unlink()
    with refused(f"{path} or {tmp_path}/{DATASETS[name].folder}/"):
        read_split(DATASETS[name], "train", str(tmp_path))


REAL = (
    ("nsmc", "nsmc", {"train": 150_000, "test": 50_000}),
    ("3i4k", "3i4k", {"train": 55_134, "test": 6_121}),
    ("klue-nli", "klue", {"train": 24_998, "dev": 3_000}),
    ("klue-sts", "klue", {"dev": 519}),
    ("korsts", "kornlu/KorSTS", {"train": 5_749, "dev": 1_500, "test": 1_379}),
)


@pytest.mark.slow
@pytest.mark.parametrize("name, folder, counts", REAL, ids=lambda value: str(value))
def test_real_files(name, folder, counts):
    if not (SHARED / "data" / folder).exists():
        pytest.skip("the published files are not here")
    for split, count in counts.items():
        examples, left_out = read_split(DATASETS[name], split, str(SHARED / "data" / folder))
        assert (len(examples), left_out) == (count, {})
        labels = {example.label for example in examples}
        if DATASETS[name].labels:
            assert labels == set(range(len(DATASETS[name].labels)))
        else:
            assert 0 <= min(labels) < max(labels) <= 5
