"""Files of texts, pairs and triples; rankings and their measures, by hand and by scipy."""

import json
import math

import numpy as np
import pytest
import scipy.stats

from bert_common.errors import InputError
from finetuning.question_answering.data import read_questions
from finetuning.similarity import lexical, ranking
from finetuning.similarity.collection import beir_files, of_pairs, read_beir
from finetuning.similarity.data import (
    INFERENCES,
    SCORED,
    Columns,
    SimilarityDataset,
    SimilarityExample,
    folder_dataset,
    known_dataset,
    own_source,
    pairs_of_questions,
    read_examples,
    with_files,
)
from finetuning.similarity.lexical import COSINE_WEIGHT, Bm25, search_tf_idf
from finetuning.similarity.ranking import rank_measures, search, unit_vectors
from finetuning.similarity.task import Similarity, scaled_scores
from tests.support.refusals import refused
from tests.support.task_data import squad_content, write_questions, write_table, write_tokenizer
from tests.support.vocabularies import write_lines

EMPTY, NONE_GIVEN = SimilarityDataset("files", {}), Columns()


def read(path, columns=NONE_GIVEN, split="train"):
    """The form of a file, and its examples' texts and scores."""
    dataset = with_files(EMPTY, {split: str(path)}, columns)
    examples, _ = read_examples(dataset, split, None)
    return str(dataset.form(split)), [(*e.texts, e.score) for e in examples]


def test_which_known_sets():
    assert set(INFERENCES) == {"mnli", "mismnli", "xnli", "klue-nli", "kornli"}
    assert set(SCORED) == {"sts-b", "klue-sts", "korsts"}
    assert known_dataset("korsts").splits == {"train": True, "dev": True, "test": True}
    assert known_dataset("sts-b").splits == {"train": True, "dev": True}


def test_forms_of_own_files(tmp_path, capsys):
    write_table(tmp_path / "a.tsv", ["sentence1", "sentence2", "score"], [["가", "나", 2.5]])
    assert read(tmp_path / "a.tsv") == ("scored pairs", [("가", "나", 2.5)])
    assert capsys.readouterr().out == (
        f"columns of {tmp_path}/a.tsv: text 'sentence1', second 'sentence2', label 'score' "
        "(--text_column, --second_column, --label_column name others)\n"
    )
    (tmp_path / "b.csv").write_text('Question,answer,other\n"가, 나",다,1\n')
    assert read(tmp_path / "b.csv") == ("pairs", [("가, 나", "다", None)])
    triple = {"query": "가", "positive": "나", "negative": "다"}
    (tmp_path / "c.jsonl").write_text(json.dumps(triple) + "\n")
    assert read(tmp_path / "c.jsonl") == ("triples", [("가", "나", "다", None)])
    write_table(tmp_path / "d.tsv", ["document", "label"], [["가", "좋다"]])
    columns = Columns(text="document")
    assert read(tmp_path / "d.tsv", columns) == ("texts", [("가", None)])


@pytest.mark.parametrize(
    ("header", "row", "columns", "message"),
    [
        (["a", "b"], ["x", "y"], Columns(), "--text_column must name a column"),
        (["text", "query"], ["x", "y"], Columns(), "--text_column must name a column"),
        (["text", "b"], ["x", "y"], Columns(second="c"), "--second_column must name a column"),
        (["text", "second", "third", "score"], "xyz1", Columns(), "a score or a third text"),
        (["text", "negative"], ["x", "y"], Columns(), "must have a second one"),
        (["question", "answer"], ["x", "y"], Columns("answer"), "must name different columns"),
        (["text", "second"], ["x", ""], Columns(), "a text must be a string that is not empty"),
        (["text", "second", "score"], ["x", "y", ""], Columns(), "the score must not be empty"),
        (["text", "second", "score"], ["x", "y", "nan"], Columns(), "label must be a number"),
        (["text", "second", "score"], ["x", "y", "-1"], Columns(), "score must not be below 0"),
    ],
)
def test_bad_files(tmp_path, header, row, columns, message):
    write_table(tmp_path / "a.tsv", header, [row])
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.tsv", columns)


@pytest.mark.parametrize("name, value", [("negative", "다"), ("score", 4)])
@pytest.mark.parametrize("ending, place", [("jsonl", "line"), ("json", "entry")])
def test_what_only_later_objects_have_is_not_passed_over(tmp_path, name, value, ending, place):
    """A file whose first object has no negative would be one of pairs, its negatives lost."""
    path = tmp_path / f"a.{ending}"

    def write(*entries):
        lines = [*map(json.dumps, entries)]
        path.write_text("\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]")

    pairs = [{"query": "가", "positive": "나"}, {"query": "라", "positive": "마", name: value}]
    for entries, missing in ((pairs, 1), (pairs[::-1], 2)):
        write(*entries)
        with refused(f"{place} {missing} must have '{name}'. Received"):
            read(path)
    # What is null in every object is no column.
    write(pairs[0], {**pairs[1], name: None})
    assert read(path)[1] == [("가", "나", None), ("라", "마", None)]


def test_no_file_in_the_folder(tmp_path):
    with refused("the task needs a file"):
        folder_dataset("csv", str(tmp_path), Columns())


def test_triples_of_inferences(tmp_path):
    rows = [
        *(("p", "e1", "entailment"), ("p", "e2", "entailment"), ("p", "c", "contradiction")),
        *(("p", "n", "neutral"), ("q", "e", "entailment"), ("r", "c", "contradiction")),
    ]
    names = "premise", "hypothesis", "gold_label", "guid"
    entries = [dict(zip(names, (*row, str(i)), strict=True)) for i, row in enumerate(rows)]
    (tmp_path / "klue-nli-v1.1_train.json").write_text(json.dumps(entries))
    dataset = known_dataset("klue-nli")
    examples, counts = read_examples(dataset, "train", str(tmp_path))
    assert [e.texts for e in examples] == [("p", "e1", "c"), ("p", "e2", "c")]
    assert counts["premises without entailment or contradiction"] == 2
    # An own file in the place of a split.
    write_table(tmp_path / "a.tsv", ["text", "second", "score"], [["가", "나", 2.5]])
    dataset = with_files(dataset, {"dev": str(tmp_path / "a.tsv")}, Columns())
    forms = {split: str(dataset.form(split)) for split in dataset.sources}
    assert forms == {"train": "triples", "dev": "scored pairs"} and list(forms) == ["train", "dev"]


def test_questions_in_squads_format(tmp_path):
    (tmp_path / "q.json").write_text(' {"data": []}')
    source = own_source(str(tmp_path / "q.json"), Columns())
    assert (source.text, source.second) == ("question", "context")
    for kind in Columns._fields:
        with refused(f"--{kind}_column must be left out where"):
            own_source(str(tmp_path / "q.json"), Columns(**{kind: "question"}))


@pytest.mark.parametrize(("name", "value"), [("question", " \t"), ("context", "")])
def test_empty_questions_are_refused(tmp_path, name, value):
    whole = read_questions(write_questions(tmp_path / "q.json", squad_content()), True)[0]
    assert len(pairs_of_questions(whole, "q.json")) == 5
    with pytest.raises(InputError, match=f"q.json question 'b': a text must .* in {name}"):
        pairs_of_questions([whole[0], whole[1]._replace(**{name: value})], "q.json")


@pytest.mark.parametrize(
    ("highest", "expected"), [(5.0, 5), (4.8, 5), (1.0, 1), (0.9, 1), (1e39, 1e39)]
)
def test_the_highest_score_is_a_cosine_of_one(highest, expected):
    raw = [SimilarityExample("", ("a", "b"), score) for score in (0.0, highest)]
    np.testing.assert_allclose(scaled_scores(raw), [0, highest / expected], rtol=1e-6)


@pytest.mark.parametrize(
    ("objective", "shown"),
    [("ranking", "66.7% of a.tsv, 33.3% of b.tsv"), ("simcse", "80.0% of a.tsv, 20.0% of b.tsv")],
)
def test_shares_are_of_what_is_trained_on(tmp_path, capsys, objective, shown):
    """Of three examples, or of their five texts."""
    parts = tuple(SimilarityDataset(f"{tmp_path}/{name}.tsv", {}) for name in "ab")
    dataset = SimilarityDataset("files", {}, parts=parts)
    task = Similarity(dataset, write_tokenizer(tmp_path), 16, objective=objective)
    texts = [("그", "는", "다"), ("그", "끝"), ("언제",)]
    raw = [SimilarityExample("", each, source=each == texts[2]) for each in texts]
    task.encode(raw, True)
    assert capsys.readouterr().out == f"batches: {shown}\n"


# === Rankings ===


def test_measures_by_hand():
    found = np.array([[7, 3, 5, 1], [2, 9, 4, 6]])
    relevant = [{3: 2.0, 1: 1.0, 8: 3.0}, {0: 1.0}]
    measures = rank_measures(found, relevant)
    dcg = 2 / math.log2(3) + 1 / math.log2(5)
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    expected = {
        "recall_at_1": 0.0,
        "recall_at_10": (2 / 3 + 0) / 2,
        "recall_at_100": (2 / 3 + 0) / 2,
        "mrr_at_10": (1 / 2 + 0) / 2,
        "ndcg_at_10": (dcg / ideal + 0) / 2,
    }
    assert measures == pytest.approx(expected, abs=1e-12)
    late = np.arange(20)[None]
    assert rank_measures(late, [{10: 1.0}])["mrr_at_10"] == 0
    assert rank_measures(late, [{10: 1.0}])["ndcg_at_10"] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-15, 1.0, 1e15])
def test_unit_vectors_of_every_size(size):
    found = unit_vectors(np.array([[3, -4, 0], [0, 0, 0]]) * size)
    np.testing.assert_allclose(found, [[0.6, -0.8, 0], [0, 0, 0]], atol=1e-7)
    assert found.dtype == np.float32


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
def test_vectors_must_be_finite(number):
    with refused("vectors must be finite numbers. Received: NaN"):
        unit_vectors(np.array([[1, 0], [number, 0]]))


def test_unit_vectors_of_float16_lose_nothing():
    vectors = np.random.default_rng(0).standard_normal((4, 9)).astype(np.float16)
    expected = unit_vectors(vectors.astype(np.float64))
    np.testing.assert_allclose(unit_vectors(vectors), expected, atol=1e-7)


@pytest.mark.parametrize("top", [1, 3, 40, 99])
def test_search_is_a_stable_sort(monkeypatch, top):
    """In blocks of a few rows, with many equal products."""
    monkeypatch.setattr(ranking, "BLOCK_ROWS", 7)
    monkeypatch.setattr(ranking, "BLOCK_VALUES", 21)
    draw = np.random.default_rng(0)
    queries = draw.integers(-1, 2, (8, 4)).astype(np.float32)
    corpus = draw.integers(-1, 2, (40, 4)).astype(np.float32)
    for asked in (queries, queries[:0]):
        found = search(asked, corpus, top)
        products = asked @ corpus.T
        expected = np.argsort(-products, axis=1, kind="stable")[:, :top]
        np.testing.assert_array_equal(found.places, expected)
        np.testing.assert_array_equal(found.scores, np.take_along_axis(products, expected, 1))


CORPUS = ["a a b", "b c", "c c c d", ""]


def test_bm25_is_its_formula():
    found = Bm25(CORPUS, str.split).search(["a c", "d d"], 4)
    k1, b, mean = 1.5, 0.75, (3 + 2 + 4 + 0) / 4

    def weight(word, text):
        words, n = text.split(), sum(word in other.split() for other in CORPUS)
        count = words.count(word)
        idf = math.log(1 + (4 - n + 0.5) / (n + 0.5))
        return idf * count * (k1 + 1) / (count + k1 * (1 - b + b * len(words) / mean))

    scores = [weight("a", t) + weight("c", t) for t in CORPUS]
    twice = [2 * weight("d", t) for t in CORPUS]  # the word is asked for twice
    for row, expected in enumerate((scores, twice)):
        order = np.argsort(-np.array(expected), kind="stable")
        np.testing.assert_array_equal(found.places[row], order)
        np.testing.assert_allclose(found.scores[row], np.array(expected)[order], rtol=1e-6)


def test_a_hybrid_search_adds_standard_scores(monkeypatch):
    """Of equal texts, nothing."""
    monkeypatch.setattr(lexical, "BLOCK_VALUES", 8)  # two queries at a time
    random, queries = np.random.default_rng(3), ["a c", "d", "unknown"]
    vectors, asked = (unit_vectors(random.normal(size=(n, 6))) for n in (4, 3))
    bm25 = Bm25(CORPUS, str.split)
    found = bm25.search_with_vectors(queries, asked, vectors, 3)
    for row, query in enumerate(queries):
        scores, cosines = bm25([query])[0].astype(np.float64), vectors @ asked[row]
        expected = COSINE_WEIGHT * scipy.stats.zscore(cosines)
        if scores.any():  # the third query shares no word
            expected = expected + scipy.stats.zscore(scores)
        order = np.argsort(-expected)[:3]
        np.testing.assert_array_equal(found.places[row], order)
        np.testing.assert_allclose(found.scores[row], expected[order], rtol=1e-5)
    ones = np.ones((2, 1), np.float32)
    found = Bm25(["a", "a"], str.split).search_with_vectors(["a"], ones[:1], ones, 5)
    assert found.places.tolist() == [[0, 1]] and found.scores.tolist() == [[0, 0]]


def test_tf_idf_finds_what_shares_characters():
    found = search_tf_idf(["배송이 늦어요"], ["날씨가 좋다", "배송 늦음", "배송이 늦어요"], 3)
    assert found.places[0].tolist() == [2, 1, 0] and found.scores[0, 0] == pytest.approx(1)


def test_equal_texts_are_one_text_of_the_corpus():
    found = of_pairs([("q1", "a"), ("q2", "b"), ("q3", "a"), ("q1", "c")])
    assert (found.queries, found.corpus) == (["q1", "q2", "q3"], ["a", "b", "c"])
    assert found.relevant == [{0: 1.0, 2: 1.0}, {1: 1.0}, {0: 1.0}]


QRELS = "query-id\tcorpus-id\tscore\nq1\td2\t2\nq1\td1\t0\nq2\td1\t1\n"
PASSAGES = [
    {"_id": "d1", "title": "제목", "text": "본문"},
    {"_id": "d2", "title": "", "text": "글"},
]


def beir(folder, qrels=QRELS, passages=PASSAGES, **queries):
    """A collection of BEIR's form; queries by their ids, of which q0 has no passage."""
    (folder / "qrels").mkdir(exist_ok=True)
    write_lines(folder / "corpus.jsonl", map(json.dumps, passages))
    queries = queries or {name: f"{name}?" for name in ("q0", "q1", "q2")}
    rows = [{"_id": name, "text": text} for name, text in queries.items()]
    write_lines(folder / "queries.jsonl", map(json.dumps, rows))
    (folder / "qrels" / "test.tsv").write_text(qrels)
    return read_beir(*beir_files(str(folder), "test"))


def test_a_collection_of_beir(tmp_path):
    found = beir(tmp_path)
    assert found == (["q1?", "q2?"], ["제목 본문", "글"], [{1: 2.0}, {0: 1.0}], [-1, -1])


def test_a_passage_with_the_id_of_the_query_is_not_ranked(tmp_path):
    """As BEIR's program: in ArguAna every query is a passage too, its own nearest one."""
    found = beir(tmp_path, "d1\td2\t1\nd2\td2\t1\nd2\td1\t1\n", d1="d1?", d2="d2?")
    assert found.own == [0, -1]  # but one that is relevant is
    places = np.array([[0, 1], [0, 1]])
    assert rank_measures(places, found.relevant, found.own)["mrr_at_10"] == 1
    assert rank_measures(places, found.relevant)["mrr_at_10"] == 0.75


@pytest.mark.parametrize(
    ("qrels", "words"),
    [
        ("q1\td9\t1\n", ("must name what the queries and passages hold",)),
        ("q1\td1\n", ("must hold the id of a query",)),
        ("q1\td1\t0\n", ("must hold a passage with a score above 0",)),
        ("q1\td1\tone\nq1\td1\t1\n", ("line 1 must hold the id of a query",)),  # no header
        ("q1\td1\t2\nq1\td2\t1\nq1\td1\t1\n", ("line 3 must give ", " one score. ", " 2 and 1")),
    ],
)
def test_bad_relevance(tmp_path, qrels, words):
    with refused(*words):
        beir(tmp_path, qrels)


def test_empty_passages_and_queries(tmp_path):
    """Some passages may be empty, and queries without a passage."""
    first, second = PASSAGES
    empty = {**second, "text": " "}
    found = beir(tmp_path, passages=[first, empty], q0="", q1="q1?", q2="q2?")
    assert found.corpus == ["제목 본문", ""] and len(found.queries) == 2
    with refused("corpus.jsonl must hold a text. Received: none"):
        beir(tmp_path, passages=[{"_id": "d1", "text": ""}, empty])
    with refused("a query must not be empty. Received: q1"):
        beir(tmp_path, q1=" ", q2="q2?")
