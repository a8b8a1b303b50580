"""Small files in every task's published format; one line of error for broken ones."""

import json

import pytest

from bert_common.errors import InputError
from finetuning.datasets import DATASETS, Dataset, SplitSource
from finetuning.metrics import METRICS, PROBABILITY_METRICS
from finetuning.readers import read_split
from tests.support.paths import SHARED
from tests.support.refusals import refused


def table(*rows):
    return "".join("\t".join(row.split("|")) + "\n" for row in rows)


def objects(*entries):
    return json.dumps(list(entries), ensure_ascii=False, indent=4)


MNLI = "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|" + (
    "sentence1_parse|sentence2_parse|sentence1|sentence2"
)
XNLI = (
    "language|gold_label|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|"
    "sentence2_parse|sentence1|sentence2|promptID|pairID|genre|label1|label2|label3|label4|"
    "label5|sentence1_tokenized|sentence2_tokenized|match"
)
FIVE_LABELS = "|label1|label2|label3|label4|label5|gold_label"
HATE = "comments|contain_gender_bias|bias|hate"
STSB = "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2"

NSMC = "id|document|label"

# Task, split, file and its content -> the last example's id (None: file and line), text, second
# sentence, label; how many there are; what was left out.
PUBLISHED = (
    ("cola", "train", "train.tsv", table("gj04|1||A dog barks.", "gj04|0|*|Dog a barks."),
     (None, "Dog a barks.", None, 0), 2, {}),
    ("cola", "dev", "dev.tsv", table("gj04|0|*|Barks dog a."),
     (None, "Barks dog a.", None, 0), 1, {}),
    ("cola", "test", "test.tsv", table("index|sentence", "7|Dogs bark."),
     ("7", "Dogs bark.", None, None), 1, {}),
    ("sst-2", "train", "train.tsv", table("sentence|label", 'a "gem" of a film |1'),
     (None, 'a "gem" of a film', None, 1), 1, {}),
    ("sst-2", "test", "test.tsv", table("index|sentence", "0|dull"),
     ("0", "dull", None, None), 1, {}),
    ("mrpc", "train", "train.tsv",
     "\ufeff" + table("Quality|#1 ID|#2 ID|#1 String|#2 String", '1|70|71|"A|A\r'),
     (None, '"A', "A", 1), 1, {}),
    ("mrpc", "test", "test.tsv", table("index|#1 ID|#2 ID|#1 String|#2 String", "0|1|2|A|B"),
     ("0", "A", "B", None), 1, {}),
    ("sts-b", "dev", "dev.tsv", table(STSB + "|score", "0|m|f|2012|1|n|n|A|B|4.750"),
     ("0", "A", "B", 4.75), 1, {}),
    ("sts-b", "test", "test.tsv", table(STSB, "0|m|f|2012|1|n|n|A|B"),
     ("0", "A", "B", None), 1, {}),
    ("qqp", "train", "train.tsv",
     table("id|qid1|qid2|question1|question2|is_duplicate", "5|1|2|A?|B?|0", "6|1|2|cut"),
     ("5", "A?", "B?", 0), 1, {"short": 1}),
    ("qqp", "test", "test.tsv", table("id|question1|question2", "0|A?|B?"),
     ("0", "A?", "B?", None), 1, {"short": 0}),
    ("mnli", "train", "train.tsv",
     table(MNLI + "|label1|gold_label", "0|p|q|g|b|b|p|p|A|B|n|neutral"),
     ("0", "A", "B", 2), 1, {}),
    ("mnli", "dev_mismatched", "dev_mismatched.tsv",
     table(MNLI + FIVE_LABELS, "4|p|q|g|b|b|p|p|A|B|n|n|n|n|n|entailment"),
     ("4", "A", "B", 1), 1, {}),
    ("mnli", "test", "test_matched.tsv", table(MNLI, "0|p|q|g|b|b|p|p|A|B"),
     ("0", "A", "B", None), 1, {}),
    ("mismnli", "dev", "dev_mismatched.tsv",
     table(MNLI + FIVE_LABELS, "4|p|q|g|b|b|p|p|A|B|n|n|n|n|n|neutral"), ("4", "A", "B", 2), 1, {}),
    ("qnli", "train", "train.tsv", table("index|question|sentence|label", "3|Q?|S|entailment"),
     ("3", "Q?", "S", 0), 1, {}),
    ("qnli", "test", "test.tsv", table("index|question|sentence", "0|Q?|S"),
     ("0", "Q?", "S", None), 1, {}),
    ("rte", "dev", "dev.tsv", table("index|sentence1|sentence2|label", "3|A|B|not_entailment"),
     ("3", "A", "B", 1), 1, {}),
    ("wnli", "train", "train.tsv", table("index|sentence1|sentence2|label", "3|A|B|1"),
     ("3", "A", "B", 1), 1, {}),
    ("xnli", "train", "multinli/multinli.train.zh.tsv",
     table("premise|hypo|label", "A|B|contradictory"),
     (None, "A", "B", 0), 1, {}),
    ("xnli", "dev", "xnli.dev.tsv",
     table(XNLI, "ar|neutral|b|b|p|p|X|Y|1|10|g|n|n|n|n|n|t|t|True",
           "zh|neutral|b|b|p|p|A|B|1|11|g|n|n|n|n|n|t|t|True"),
     ("11", "A", "B", 2), 1, {}),
    ("nsmc", "train", "ratings_train.txt", table(NSMC, "99|굳 ㅋ|1", "100||0"),
     ("100", "", None, 0), 2, {}),
    ("nsmc", "test", "ratings_test.txt", table(NSMC, "98|별로|0"), ("98", "별로", None, 0), 1, {}),
    ("klue-tc", "dev", "ynat-v1.1_dev.json",
     objects({"guid": "ynat-v1_dev_00000", "title": "제목", "label": "세계", "url": "u"}),
     ("ynat-v1_dev_00000", "제목", None, 4), 1, {}),
    ("klue-nli", "train", "klue-nli-v1.1_train.json",
     objects({"guid": "g0", "premise": "A", "hypothesis": "B", "gold_label": "neutral"}),
     ("g0", "A", "B", 1), 1, {}),
    ("klue-sts", "dev", "klue-sts-v1.1_dev.json",
     objects({"guid": "g1", "sentence1": "A", "sentence2": "B",
              "labels": {"label": 4.9, "real-label": 4.857142857142857, "binary-label": 1}}),
     ("g1", "A", "B", 4.857142857142857), 1, {}),
    ("kornli", "dev", "xnli.dev.ko.tsv",
     table("sentence1|sentence2|gold_label", "A|B|contradiction"),
     (None, "A", "B", 0), 1, {}),
    ("korsts", "train", "sts-train.tsv",
     table("genre|filename|year|id|score|sentence1|sentence2", "m|M|2012|0001|5.000|A|B"),
     (None, "A", "B", 5.0), 1, {}),
    ("paws-x", "test", "test_2k.tsv",
     table("id|sentence1|sentence2|label", "1|NS|B|0", "2|A|B|1", "3|A|NS|0"),
     ("2", "A", "B", 1), 1, {"NS": 2}),
    ("3i4k", "train", "fci_train_val.txt", "0\t연두색\r\n6\t되면\r\n",
     (None, "되면", None, 6), 2, {}),
    ("3i4k", "test", "fci_test.txt", "3\t오\r\n", (None, "오", None, 3), 1, {}),
    ("klue-re", "dev", "klue-re-v1.1_dev.json",
     objects({"guid": "g2", "sentence": "나는 서울.", "label": "per:title",
              "subject_entity": {"word": "나", "start_idx": 0, "end_idx": 0, "type": "PER"},
              "object_entity": {"word": "서울", "start_idx": 3, "end_idx": 4, "type": "LOC"}}),
     ("g2", "@ * 인물 * 나@는 # ^ 장소 ^ 서울#.", None, 29), 1, {}),
    ("hate-speech", "train", "train.tsv", table(HATE, "글|False|none|hate"),
     (None, "글", None, 2), 1, {}),
    ("hate-speech", "test", "test.no_label.tsv", table("comments", "글"),
     (None, "글", None, None), 1, {}),
    ("hate-bias", "dev", "dev.tsv", table(HATE, "글|True|gender|none"),
     (None, "글", None, 1), 1, {}),
)  # fmt: skip


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_every_task_has_a_small_file():
    assert {name for name, *_ in PUBLISHED} == set(DATASETS)


@pytest.mark.parametrize(
    "name, split, file, content, last, count, expected_left_out",
    PUBLISHED,
    ids=[f"{name}-{split}" for name, split, *_ in PUBLISHED],
)
def test_published_format(tmp_path, name, split, file, content, last, count, expected_left_out):
    """In the task's own folder and in one beside those of other tasks."""
    path = write(tmp_path / DATASETS[name].folder, file, content)
    for folder in (tmp_path, tmp_path / DATASETS[name].folder):
        examples, left_out = read_split(DATASETS[name], split, str(folder))
        number, *rest = last
        assert examples[-1][1:4] == tuple(rest)
        assert type(examples[-1].label) is type(rest[-1])
        assert examples[-1].id == (number or f"{path} line {content.count(chr(10))}")
        assert (len(examples), left_out) == (count, expected_left_out)


def test_the_training_data_of_kornli_is_two_files(tmp_path):
    for name in ("snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"):
        write(tmp_path, name, table("sentence1|sentence2|gold_label", f"{name}|B|neutral"))
    examples, _ = read_split(DATASETS["kornli"], "train", str(tmp_path))
    assert [e.text for e in examples] == ["snli_1.0_train.ko.tsv", "multinli.train.ko.tsv"]


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


LINES = Dataset(
    "", {"train": SplitSource(("data.jsonl",), "text", None, "label")}, ("no", "yes"), ("accuracy",)
)


def test_json_lines(tmp_path):
    write(tmp_path, "data.jsonl", '{"text": "글", "label": "yes"}\n{"text": "a", "label": "no"}\n')
    examples, _ = read_split(LINES, "train", str(tmp_path))
    assert [(e.text, e.label) for e in examples] == [("글", 1), ("a", 0)]


@pytest.mark.parametrize(
    "name, content, words",
    (
        ("nsmc", "", ("ratings_train.txt", "must not be empty")),
        ("nsmc", table(NSMC), ("ratings_train.txt", "must hold an example")),
        ("nsmc", "\ufeff", ("ratings_train.txt", "must hold a header", "none")),
        ("nsmc", table("id|text|label", "1|a|0"), ("line 1", "document", "id, text, label")),
        ("nsmc", table(NSMC, "1|a|0", "2|b"), ("line 3", "at least 3 columns", "2")),
        ("nsmc", table(NSMC, "1|a|2"), ("line 2", "one of 0, 1", "'2'")),
        ("nsmc", table(NSMC, "1|a|"), ("line 2", "one of 0, 1", "''")),
        ("nsmc", (table(NSMC) + "1\ta").encode() + b"\xff\t0\n", ("line 2", "UTF-8", "0xff")),
        ("3i4k", "0\ta\nb\n", ("fci_train_val.txt line 2", "at least 2 columns", "1")),
        ("korsts", table("score|sentence1|sentence2", "x|A|B"), ("line 2", "a number", "'x'")),
        ("korsts", table("score|sentence1|sentence2", "nan|A|B"), ("line 2", "a number", "'nan'")),
        ("klue-nli", "[{", ("train.json", "must hold JSON")),
        ("klue-nli", '{"a": 1}', ("train.json", "a list of objects", '{"a": 1}')),
        ("klue-nli", '{"a": 1}\n{"a": 2}\n', ("[...]; lines of objects are .jsonl", '{"a": 1}')),
        ("klue-nli", "[3]", ("train.json entry 1", "an object", "3")),
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


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"ratings_train.txt or .*nsmc/ratings_train.txt"):
        read_split(DATASETS["nsmc"], "train", str(tmp_path))


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
