"""What fine-tuned models predict in Python is what their programs write."""

import csv
import itertools
import json

import numpy as np
import pytest

from bert_common.errors import InputError
from korean_bert import load_model
from run_scripts import classifier, ner, race, squad
from tests.support.models.model_folders import change_json, write_folder
from tests.support.models.served_models import write_strong_folder
from tests.support.task_data import squad_file, write_questions

TEXTS = [
    "나는 학교에 갔다.",
    "the book is red ?",
    "나는 나는 학교에 학교에 갔다. the books is reds . 나는 갔다 학교에 . the end book red is",
    "books",
    "red 나는 학교",
]


def make_model(folder, task, kind="bert", marked=False, **settings):
    """A model whose head tells texts apart; a marked end of a word may be a token of its own."""
    write_strong_folder(folder, task, kind, **settings)
    if marked:
        with open(folder / "vocab.txt", "a", encoding="utf-8") as file:
            file.write("\u2581\n##\u2581\n##는\u2581\n")
        options = {"word_end_marker": "\u2581", "word_end_marker_at": "eojeol"}
        config = {"kind": "korean", "unknown": "character", **options}
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return load_model(folder)


def run(program, model, folder, *flags):
    """Lets a program predict with the model; the folder that it wrote into."""
    argv = ["x", f"--model_dir={model.loaded.folder.path}", f"--output_dir={folder}/out"]
    argv += [f"--data_dir={folder}", "--do_predict", "--xla=off", *flags]
    assert program.main(argv) == 0
    return folder / "out"


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def assert_close(found, written):
    np.testing.assert_allclose(list(found), [float(number) for number in written], atol=1e-5)


@pytest.mark.parametrize("task_type", ("single_label", "multi_label", "regression"))
def test_classes(task_type, tmp_path):
    labels = {"labels": None, "task_name": "klue-sts"} if task_type == "regression" else {}
    model = make_model(tmp_path / "m", "classification", task_type=task_type, **labels)
    pairs = [(text, "the book") for text in TEXTS]
    found = model.predict(pairs, batch_size=3)
    alone = model.predict(pairs[0])
    if task_type == "regression":
        scores = [each.label for each in found]
        assert alone.label == pytest.approx(scores[0], abs=1e-5)
        assert np.std(scores) > 0.1 and all(each.probabilities == {} for each in found)
        return
    rows = "".join(f"{text}\tthe book\n" for text in TEXTS)
    (tmp_path / "test.tsv").write_text(f"text\tsecond\n{rows}", encoding="utf-8")
    named = {"text_column": "text", "second_column": "second"}
    change_json(tmp_path / "m" / "finetuning.json", **named)
    columns = [f"--{name}={value}" for name, value in named.items()]
    header, *rows = table(run(classifier, model, tmp_path, *columns) / "predictions_test.tsv")
    assert header[-3:] == ["나쁨", "보통", "좋음"] and len(rows) == len(found)
    for row, each in zip(rows, found, strict=True):
        label = each.label if task_type == "single_label" else ",".join(each.label)
        assert row[header.index("prediction")] == label
        assert_close(each.probabilities.values(), row[-3:])
        assert list(each.probabilities) == header[-3:]
    assert alone.label == found[0].label and len({each.label for each in found}) > 1


def test_labels_that_a_regression_recorded_are_no_classes(tmp_path):
    """run_classifier took --labels with --task_type=regression, and folders have them."""
    settings = {"task_type": "regression", "task_name": "tsv"}
    model = make_model(tmp_path / "m", "classification", labels=None, **settings)
    change_json(tmp_path / "m" / "finetuning.json", labels="1,5")
    assert load_model(tmp_path / "m").predict(TEXTS[0]) == model.predict(TEXTS[0])


@pytest.mark.parametrize("marked", (False, True))
def test_tags_and_entities(marked, tmp_path):
    model = make_model(tmp_path / "m", "ner", marked=marked)
    found = model.predict([*TEXTS, "", " "])
    lines = "".join("".join(f"{word} O\n" for word in text.split()) + "\n" for text in TEXTS)
    (tmp_path / "test.txt").write_text(lines, encoding="utf-8")
    folder = run(ner, model, tmp_path)
    entities, sentences = table(folder / "predictions_test.tsv")[1:], {}
    for row in table(folder / "tags_test.tsv"):
        if row and row[0].startswith("## "):
            sentence = sentences.setdefault(row[0][3:], [])
        elif row:
            sentence.append(row)
    by_name = zip(sentences.items(), TEXTS, found, strict=False)
    for (name, rows), text, tagged in by_name:
        pairs = zip(tagged.units, tagged.tags, strict=True)
        shown = [[text[slice(*unit)], "O", tag] for unit, tag in pairs]
        assert shown == [row[:3] for row in rows]
        assert_close(tagged.probabilities, [row[3] for row in rows])
        written = [row for row in entities if row[0] == name]
        cells = [[name, str(e.start), str(e.end), e.kind, e.text] for e in tagged.entities]
        assert cells == [row[:5] for row in written]
        assert_close([e.probability for e in tagged.entities], [row[5] for row in written])
        assert all(text[e.start : e.end] == e.text for e in tagged.entities)
    assert len(entities) > 2 and len(sentences) == len(TEXTS)
    assert found[-2:] == [((), (), (), ())] * 2


@pytest.mark.parametrize(
    "kind, negative, marked",
    (("bert", False, False), ("bert", True, True), ("albert", True, False)),
)
def test_answers(kind, negative, marked, tmp_path):
    """With long texts in windows, with and without "no answer", with ALBERT's beams."""
    beams = {"start_n_top": 3, "end_n_top": 2} if kind == "albert" else {}
    changes = {"version_2_with_negative": negative, "null_score_diff_threshold": 0.5, **beams}
    model = make_model(tmp_path / "m", "question_answering", kind, marked, **changes)
    contexts = [f"{text} 나는 학교에 갔다. the books" for text in TEXTS]
    questions = ["the book ?", "학교에 갔다 ?"]
    asked = [(question, context) for context in contexts for question in questions]
    found = model.predict(asked)
    paragraphs = [
        {"context": context, "qas": [{"id": f"{i} {q}", "question": q} for q in questions]}
        for i, context in enumerate(contexts)
    ]
    write_questions(tmp_path / "test.json", squad_file(paragraphs))
    folder = run(squad, model, tmp_path, "--predict_file=test.json")
    answers = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    nbest = json.loads((folder / "nbest_predictions.json").read_text(encoding="utf-8"))
    assert [each.answer.text for each in found] == list(answers.values())
    for (_, context), each, expected in zip(asked, found, nbest.values(), strict=True):
        # With beams the file has a placeholder where nothing may be an answer.
        expected = [c for c in expected if c["text"] or not beams]
        assert [c.text for c in each.candidates] == [c["text"] for c in expected]
        assert_close([c.probability for c in each.candidates], [c["probability"] for c in expected])
        for candidate in (each.answer, *each.candidates):
            if candidate.text:
                assert context[candidate.start : candidate.end] == candidate.text
            else:
                assert (candidate.start, candidate.end) == (None, None)
    empty = [each.answer.text == "" for each in found]
    assert any(empty) == negative and not all(empty) and len(set(answers.values())) > 2


def test_choices(tmp_path):
    model = make_model(tmp_path / "m", "multiple_choice")
    options = ("red", "book", "학교", "나는")
    asked = [("the book is _ ?", text, options) for text in TEXTS]
    found = model.predict(asked)
    article = {"questions": [asked[0][0]], "options": [options], "answers": ["A"]}
    for level, (i, text) in itertools.product(("middle", "high"), enumerate(TEXTS)):
        path = tmp_path / "test" / level / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {**article, "article": text, "id": path.name}
        path.write_text(json.dumps(values), encoding="utf-8")
    rows = table(run(race, model, tmp_path) / "predictions_test.tsv")[1:]
    for row, each in zip(rows[: len(TEXTS)], found, strict=True):
        assert row[2] == "ABCD"[each.index] and each.option == options[each.index]
        assert_close(each.probabilities, row[3:])
    assert len({each.index for each in found}) > 1


def test_a_question_longer_than_a_row(tmp_path):
    """The usual --max_qa_length, as of a folder of transformers, is more than a short model has."""
    asked = [("the book is red ? " * 5, text, ("red", "학교")) for text in TEXTS]
    found = [
        make_model(tmp_path / str(longest), "multiple_choice", max_qa_length=longest).predict(asked)
        for longest in (21, 128)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "task, texts, message",
    (
        ("pretraining", ["a"], "predict needs a fine-tuned model.*pretraining"),
        ("classification", [3], "this model takes texts, or pairs .* Received: 3"),
        ("ner", [("a", "b")], "this model takes texts. Received"),
        ("question_answering", ["what?"], "takes pairs \\(question, text\\). Received: 'what\\?'"),
        ("question_answering", [("a", None)], "takes pairs \\(question, text\\)"),
        ("similarity", ["ab"], "this model takes pairs"),
        ("similarity", [{"a", "b"}], "this model takes pairs"),
        ("similarity", [{"a": 1, "b": 2}], "this model takes pairs"),
        ("multiple_choice", [("a", "b", ("c",))], "takes triples .question, text, options"),
        ("multiple_choice", [("a", "b", "cd"), ("a", "b", "cde")], "with as many options each"),
    ),
)
def test_what_is_refused(task, texts, message, tmp_path):
    write_folder(tmp_path, task=task)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path).predict(texts)


def test_nothing_and_other_labels(tmp_path):
    write_folder(tmp_path, task="ner", labels="A,B,C")
    model = load_model(tmp_path)
    with pytest.raises(InputError, match="the classes must be O and, of each .* with A, B, C"):
        model.predict([])
    write_folder(tmp_path / "m", task="ner")
    assert load_model(tmp_path / "m").predict([]) == []
    # Of a later version, or added by a user.
    change_json(tmp_path / "m" / "finetuning.json", task_name="new")
    with pytest.raises(InputError, match="task_name must be one of klue-ner, .* with new"):
        load_model(tmp_path / "m").predict("a")


def test_few_graphs_are_traced(tmp_path):
    """However many lengths and numbers of texts there are."""
    write_folder(tmp_path, task="ner")
    model = load_model(tmp_path)
    for count in (1, 2, 3, 5):
        for length in (1, 9, 14):
            model.predict(["나 " * length] * count)
    assert model._predictor().run.experimental_get_tracing_count() <= 3
