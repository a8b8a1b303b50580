"""run_squad: questions in, answers out, with the smallest models that can learn."""

import dataclasses
import json
import re

import numpy as np
import pytest

from finetuning.examples import Examples
from finetuning.question_answering.data import Answer, Question, read_questions
from finetuning.question_answering.scores import score_answers
from finetuning.question_answering.task import nearest_sentence, span_loss
from finetuning.question_answering.windows import encode_questions, make_windows
from run_scripts import squad
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import unused_steps
from run_scripts.flags.parser import parse
from tests.support.crosses import slow
from tests.support.models.model_folders import write_folder
from tests.support.paths import ROOT
from tests.support.programs import NO_DROPOUT, one_line, results, spoken_lines
from tests.support.refusals import refused
from tests.support.task_data import (
    NUMBERS,
    WORDS,
    number_questions,
    read_table,
    squad_content,
    squad_entry,
    squad_file,
    write_questions,
    write_tokenizer,
)
from tests.support.tiny_models import write_config
from tests.support.vocabularies import write_pieces


def write_squad_config(folder, kind):
    sizes = {"max_position_embeddings": 64, **NO_DROPOUT}
    return write_config(folder / "config.json", kind, **sizes)


def run(folder, *flags):
    """The program, without XLA, which compiles longer than these models train."""
    given = ["run_squad.py", f"--output_dir={folder}/output", "--xla=off", *flags]
    return squad.main([str(each) for each in given])


def train(folder, kind="bert", version_2=False, *flags):
    write_questions(folder / "train.json", number_questions(48, 1, version_2))
    write_questions(folder / "dev.json", number_questions(18, 2, version_2))
    pieces = [*WORDS, *NUMBERS, "what", "number", "?", "."]
    given = [
        f"--{kind}_config_file={write_squad_config(folder, kind)}", f"--data_dir={folder}",
        f"--vocab_file={write_pieces(folder, pieces)}", "--train_file=train.json",
        "--predict_file=dev.json", "--do_train", "--do_predict", "--max_query_length=5",
        "--max_seq_length=24", "--doc_stride=8",  # a text has two windows, or three
        "--train_batch_size=8", "--learning_rate=1e-2", "--num_train_epochs=8",
        f"--version_2_with_negative={version_2}",
    ]  # fmt: skip
    return run(folder, *given, *flags)


def written(folder, name="predictions"):
    return json.loads((folder / "output" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which BERT was trained for SQuAD 1.1."""
    folder = tmp_path_factory.mktemp("trained")
    assert train(folder) == 0
    return folder


@pytest.mark.parametrize(
    "kind, version_2", (slow("bert", True), slow("albert", False), ("albert", True))
)
def test_learns_and_answers_again(kind, version_2, tmp_path, capsys):
    assert train(tmp_path, kind, version_2) == 0
    check_results(tmp_path, version_2)
    check_again(tmp_path, capsys)


def test_learns_squad_1(trained, capsys):
    check_results(trained, False)
    check_again(trained, capsys)


def test_weights_without_a_head_in_the_output_folder(tmp_path, capsys):
    """They are what is read, with --init_checkpoint too, so to leave it out would not help."""
    write_folder(tmp_path / "output")
    write_questions(tmp_path / "dev.json", number_questions(2, 2))
    weights = f"{tmp_path}/output/model.ckpt-3"
    flags = [f"--model_dir={tmp_path}/output", f"--init_checkpoint={weights}"]
    flags += ["--max_seq_length=24", "--max_query_length=5", "--doc_stride=8"]
    assert run(tmp_path, *flags, f"--predict_file={tmp_path}/dev.json", "--do_predict") == 1
    line = spoken_lines(capsys.readouterr().err)[-1]
    assert f"with the task's head. Received: {weights} without cls/squad/output_weights" in line


def check_results(folder, version_2):
    """Nearly everything is found, and that is what was written."""
    found = results(folder / "output")
    assert found["eval_exact"] > 90 and found["eval_f1"] >= found["eval_exact"]
    assert found["global_step"] == 48  # 8 passes over 48 questions, not over their windows
    answers = written(folder)
    entries = [p["qas"][0] for p in number_questions(18, 2, version_2)["data"][0]["paragraphs"]]
    true = {each["id"]: [answer["text"] for answer in each["answers"]] for each in entries}
    right = sum([text] == (true[key] or [""]) for key, text in answers.items())
    assert found["eval_exact"] == pytest.approx(100 * right / 18)
    assert written(folder, "nbest_predictions").keys() == answers.keys()
    assert (folder / "output" / "null_odds.json").exists() == version_2
    if version_2:
        for name in ("exact", "f1", "best_exact", "best_f1"):
            assert found[f"baseline_{name}"] == pytest.approx(100 / 3)
        assert found["eval_best_exact"] >= found["eval_exact"]
        assert found["eval_NoAns_exact"] > 80 and "eval_best_f1_thresh" in found
    else:
        assert found["baseline_exact"] == 0 < found["baseline_f1"] < 20


def check_again(folder, capsys):
    """The same figures from the folder and the questions alone."""
    before, answers = results(folder / "output"), written(folder)
    for name in ("eval_results.txt", "predictions.json"):
        (folder / "output" / name).unlink()
    capsys.readouterr()
    assert run(folder, f"--predict_file={folder}/dev.json", "--do_predict") == 0
    shown = capsys.readouterr().out
    # The baseline of SQuAD 1.1 is another sentence for each question.
    assert "baseline: without a model)" in shown
    assert f"details: {folder}/output/mistakes_dev.tsv" in shown
    _, *mistakes = read_table(folder / "output" / "mistakes_dev.tsv")
    assert all(true != predicted for _, true, predicted, *_ in mistakes)
    assert written(folder) == answers
    assert results(folder / "output") == before | {"global_step": 48}


def test_hard_questions(trained, capsys):
    """A text of 10,000 characters, a question that is too long, an answer at a window's edge."""
    questions = number_questions(3, 5, words=30)
    long, asked, edge = (p for p in questions["data"][0]["paragraphs"])
    filler = "green " * 1700
    long["context"] = filler + long["context"]
    long["qas"][0]["answers"][0]["answer_start"] += len(filler)
    asked["qas"][0]["question"] = "what number ? " * 30
    # 24 pieces of a row hold 18 of a text after this question: one piece of the answer of two is
    # the first window's last.
    edge["context"] = "red " * 17 + "seven nine " + "red " * 17
    edge["qas"][0]["answers"] = [{"text": "seven nine", "answer_start": 68}]
    path = write_questions(trained / "hard.json", questions)
    assert run(trained, f"--predict_file={path}", "--do_predict") == 0
    answers = written(trained)
    assert re.search(r"dev: [0-9]{3} windows of 3 examples", capsys.readouterr().out)
    assert len(long["context"]) > 10_000
    for paragraph in (long, asked):
        assert answers[paragraph["qas"][0]["id"]] == paragraph["qas"][0]["answers"][0]["text"]
    assert answers["5-2"].split()[0] in NUMBERS


def test_google_s_way_to_cut_answers(trained, capsys):
    """Lower-casing takes Hangul apart, so Google's program finds no place in the word.

    A network so small does not find the number beside an unknown word in every text, and in which
    ones depends on the processor: the first text that it answers is taken.
    """
    for seed in range(9, 19):
        questions = number_questions(1, seed)
        (paragraph,) = questions["data"][0]["paragraphs"]
        number = paragraph["qas"][0]["answers"][0]["text"]
        paragraph["context"] = paragraph["context"].replace(number, f"{number},한")
        path = write_questions(trained / "hangul.json", questions)
        found = []
        for flags in ([], ["--google_answers"]):
            assert run(trained, f"--predict_file={path}", "--do_predict", *flags) == 0
            (answer,) = written(trained).values()
            found.append((answer, results(trained / "output")["eval_exact"]))
        if found[0] == (number, 100):
            break
    assert found == [(number, 100), (f"{number},한", 0)]
    flags = ["--google_answers", "--start_n_top=2"]
    (trained / "beams").mkdir()
    capsys.readouterr()  # warnings of the text's [UNK]
    assert train(trained / "beams", "bert", False, *flags) == 1
    assert "--google_answers requires BERT's head" in one_line(capsys)


def test_answers_that_are_not_known(trained, capsys):
    """A file without answers is answered, not scored."""
    questions = number_questions(4, 6)
    for paragraph in questions["data"][0]["paragraphs"]:
        del paragraph["qas"][0]["answers"]
    path = write_questions(trained / "unknown.json", questions)
    (trained / "output" / "eval_results.txt").unlink(missing_ok=True)
    assert run(trained, f"--predict_file={path}", "--do_predict") == 0
    assert set(written(trained)) == {f"6-{i}" for i in range(4)}
    assert not (trained / "output" / "eval_results.txt").exists()
    capsys.readouterr()
    assert run(trained, f"--predict_file={path}", "--do_eval") == 1
    assert "--do_eval needs a split with labels" in one_line(capsys)


REFUSED = {
    "--do_train": "--do_train requires --train_file",
    "--do_predict": "--do_predict requires --predict_file",
    "--do_eval": "--do_eval requires --predict_file",
    "--freeze_encoder": "Unknown command line flag 'freeze_encoder'",
    "--predict_file=dev.json --do_predict --max_query_length=40": "greater than --max_query_length",
    "--predict_file=dev.json --do_predict --version_2_with_negative": "was trained with: False",
    "--predict_file=none.json --do_predict": "none.json",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_refused_flags(flags, trained, capsys, monkeypatch):
    monkeypatch.chdir(trained)
    assert run(trained, *flags.split()) == 1
    assert REFUSED[flags] in one_line(capsys)


def test_another_program_s_folder_is_refused(tmp_path, capsys):
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "finetuning.json").write_text('{"task_name": "nsmc"}')
    write_questions(tmp_path / "dev.json", number_questions(2, 8))
    assert run(tmp_path, f"--predict_file={tmp_path}/dev.json", "--do_predict") == 1
    assert "one that this program trained" in one_line(capsys)


@pytest.mark.slow
def test_korquad(tmp_path):
    """Korean, scored by characters."""
    data = squad_content()
    for paragraph in data["data"][0]["paragraphs"]:
        paragraph["qas"] = [q for q in paragraph["qas"] if not q.get("is_impossible")]
    path = write_questions(tmp_path / "q.json", data)
    write_tokenizer(tmp_path)
    flags = [
        f"--albert_config_file={write_squad_config(tmp_path, 'albert')}", "--tokenizer=korean",
        f"--vocab_file={tmp_path}/vocab.txt", f"--data_dir={tmp_path}", "--train_file=q.json",
        "--predict_file=q.json", "--task_name=korquad", "--max_seq_length=48",
        "--max_query_length=8", "--train_batch_size=4", "--do_train", "--do_predict",
        "--train_step=2", "--bucket_boundaries=none",
    ]  # fmt: skip
    assert run(tmp_path, *flags) == 0
    found, answers = results(tmp_path / "output"), written(tmp_path)
    scores = score_answers(read_questions(path)[0], answers, "korquad")
    assert (found["eval_exact"], found["eval_f1"]) == tuple(scores.values())
    assert set(answers) == set("abce") and all(answers.values())


def test_the_answer_is_in_the_window_or_at_cls(tmp_path):
    tokenizer = write_tokenizer(tmp_path)
    question = Question("a", "누구가?", "서울 임종석은 끝", (Answer("임종석은", 3),), False)
    encoded = encode_questions(tokenizer, [question], 8)

    def place_of(question, length=16):
        window = make_windows([question], encoded, tokenizer, length, 4)[0][0]
        return window.start_position, window.end_position

    [window], _ = make_windows([question], encoded, tokenizer, 16, 4)
    place = place_of(question)
    assert [tuple(window.spans[i - window.first]) for i in place] == [(3, 6), (6, 7)]
    length = window.first + 2 + 1  # the first window has 서울 임종석
    assert place_of(question, length) == (0, 0)
    assert place_of(question._replace(answers=())) == (0, 0)
    assert place_of(question._replace(is_impossible=True)) == (0, 0)
    # Of an answer that --skip_bad_answers keeps for the score, which is not in the text.
    assert place_of(question._replace(answers=(Answer("nowhere", -1),))) == (0, 0)
    logits = np.zeros(16, np.float32)
    logits[place[0]] = 3.0
    examples = Examples(None, None, None, [question], [window])
    outputs = {"start_logits": [logits], "end_logits": [np.zeros(16, np.float32)]}
    start = np.log(15 + np.exp(3)) - 3
    assert span_loss(examples, outputs) == pytest.approx((start + np.log(16)) / 2)


def test_nearest_sentence():
    text = "하늘은 파랗다. 서울의 인구는 많다. 부산은 항구다."
    assert nearest_sentence("서울의 인구는?", text) == "서울의 인구는 많다."
    assert nearest_sentence("?", text) == "하늘은 파랗다."
    assert nearest_sentence("?", " ") == ""


def test_launchers():
    """google-research/albert's two programs are this one, the second with SQuAD 2.0's flag."""
    for name, changed in (("run_squad", ""), ("run_squad_v1", ""), ("run_squad_v2", "negative")):
        text = (ROOT / f"{name}.py").read_text()
        assert "from run_scripts.programs import run_squad" in text
        assert ("--version_2_with_negative" in text) == bool(changed)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind, student", (("albert", "albert"), ("bert", "albert")))
def test_a_student_has_its_teacher_s_head(kind, student, tmp_path, capsys):
    """ALBERT's for SQuAD 2.0 searches with beams, though no flag says so."""
    outputs = []
    for name in (kind, student):
        folder = tmp_path / str(len(outputs))
        folder.mkdir()
        capsys.readouterr()
        flags = [f"--teacher_dir={output}" for output in outputs]
        flags += ["--do_predict=false", "--num_train_epochs=0.2"]
        outputs.append(folder / "output")
        status = train(folder, name, True, *flags)
        assert status == int(len(outputs) == 2 and kind != student)
    if kind != student:
        assert "the same head (a beam, start_n_top above 0: True)" in capsys.readouterr().err


def test_bad_answers_are_left_out_by_a_flag(tmp_path):
    """Of the training; what is measured keeps the question, whose score they lower."""
    context = "서울은 수도이다."
    bad = squad_entry("bad", context) | {"answers": [{"text": "부산", "answer_start": 0}]}
    paragraph = {"context": context, "qas": [squad_entry("good", context, "서울"), bad]}
    path = write_questions(tmp_path / "q.json", squad_file([paragraph]))
    argv = ["run", "--do_train", f"--train_file={path}", "--bert_config_file=c", "--output_dir=b"]
    parsed = parse(squad.SquadFlags, argv)
    values = resolve_model_defaults(parsed, "bert", **unused_steps(parsed))
    with refused("'부산' of question 'bad'"):
        squad.read_data(values)
    values = dataclasses.replace(values, skip_bad_answers=True)
    assert [q.id for q in squad.read_data(values).files["train"][0]] == ["good"]
    others = {"do_train": False, "do_predict": True, "predict_file": str(path)}
    measured = dataclasses.replace(values, **others)
    assert [q.id for q in squad.read_data(measured).files["dev"][0]] == ["good", "bad"]
