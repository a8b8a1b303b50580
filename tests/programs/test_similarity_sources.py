"""run_similarity on several training files."""

import json
import re
import signal

import pytest

from bert_tf.checkpoint_files import list_checkpoints
from tests.support.programs import DROPOUT, arrays, assert_same, results
from tests.support.similarity_jobs import HEADERS, NO_FOLDER, SimilarityJob, rows_of, write
from tests.support.task_data import read_table, write_table
from tests.support.tiny_models import without_graphs


def write_several(job, *forms):
    """Files of training examples; returns --train_file."""
    paths = [job.folder / f"{form}.tsv" for form in forms]
    for seed, (form, path) in enumerate(zip(forms, paths, strict=True)):
        write_table(path, HEADERS[form], rows_of(form, 40, seed))
    return ",".join(map(str, paths))


@pytest.fixture
def several(tmp_path):
    """A job on pairs, triples, scored pairs and texts, with dropout."""
    job = write(SimilarityJob(tmp_path, **DROPOUT))
    job.files = {
        **NO_FOLDER,
        "train_file": write_several(job, "pairs", "triples", "scored", "texts"),
        "train_shares": "3,2,4,1",
        "dev_file": job.data / "dev.tsv",
    }
    return job


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2])
def test_several_files_resume_to_the_last_bit(several, monkeypatch, parts):
    flags = {"train_step": 5, "save_checkpoints_steps": 2, "gradient_accumulation_steps": parts}
    flags |= several.files
    with without_graphs(parts == 2):
        assert several.run(**flags, output_dir=several.folder / "whole") == 0
        assert several.stop(monkeypatch, signal.SIGTERM, 3, **flags) == 0
        assert list_checkpoints(several.output)[-1] < 5
        assert several.run(**flags) == 0
    assert_same(arrays(several.output, 5), arrays(several.folder / "whole", 5))


@pytest.mark.slow
def test_several_files_are_announced_and_learned(several, prints):
    flags = {"do_eval": True, "train_step": 100, "eval_batch_size": 16}
    printed = prints(several.run, **several.files, **flags)
    assert "train: 160 examples, 40 of pairs.tsv, 40 of triples.tsv" in printed
    shares = "30.0% of pairs.tsv, 20.0% of triples.tsv, 40.0% of scored.tsv, 10.0% of texts.tsv"
    assert f"batches: {shares}\n" in printed
    assert results(several.output)["eval_spearman"] > 0.8


@pytest.mark.usefixtures("eagerly")
def test_files_of_several_forms_are_predicted(several):
    """Cells stand under their names: empty where a row lacks a text or a score."""
    assert several.run(**several.files, train_step=1) == 0
    flags = {**several.files, "data_dir": "", "predict_split": "train"}
    assert several.again(**flags, do_predict=True) == 0
    header, *rows = read_table(several.output / "predictions_train.tsv")
    assert header[1:] == ["text", "second", "third", "score", "cosine", "cosine_third"]
    assert {len(row) for row in rows} == {7} and len(rows) == 160
    found = ["".join(" x"[bool(cell)] for cell in row[2:]) for row in rows[::40]]
    assert found == ["x  x ", "xx xx", "x xx ", "     "]  # pairs, triples, scored, texts


@pytest.mark.usefixtures("eagerly")
def test_files_of_one_name_are_told_apart(several, prints):
    (several.folder / "other").mkdir()
    paths = [several.folder / "pairs.tsv", several.folder / "other/pairs.tsv"]
    write_table(paths[1], HEADERS["pairs"], rows_of("pairs", 30))
    flags = {**several.files, "train_file": f"{paths[0]},{paths[1]}", "train_shares": "1,1"}
    printed = prints(several.run, **flags, train_step=1)
    assert f"70 examples, 40 of {paths[0]}, 30 of {paths[1]}\n" in printed
    assert f"batches: 50.0% of {paths[0]}, 50.0% of {paths[1]}\n" in printed


@pytest.mark.usefixtures("eagerly")
def test_without_shares_files_come_as_they_have_examples(several, prints):
    flags = {**several.files, "train_shares": None, "train_step": 1}
    assert "25.0% of texts.tsv\n" in prints(several.run, **flags)


@pytest.mark.usefixtures("eagerly")
def test_one_file_and_a_list_of_one_are_the_same(several):
    one = {"train_step": 2, "train_file": several.folder / "triples.tsv", "train_shares": None}
    flags = {**several.files, **one}
    assert several.run(**flags) == 0
    flags["train_file"] = f"{flags['train_file']},"
    assert several.run(**flags, output_dir=several.folder / "list") == 0
    assert_same(arrays(several.output, 2), arrays(several.folder / "list", 2))


@pytest.mark.usefixtures("eagerly")
def test_the_training_split_of_a_known_set_beside_a_file(several, prints):
    """Its triples, by its name."""
    kinds = ("entailment", "contradiction")
    rows = [
        {"guid": f"{i}-{k}", "premise": text, "hypothesis": other, "gold_label": k}
        for i, (text, *others) in enumerate(rows_of("triples", 20))
        for k, other in zip(kinds, others, strict=True)
    ]
    (several.data / "klue-nli-v1.1_train.json").write_text(json.dumps(rows))
    flags = {"task_name": "klue-nli", "data_dir": several.data, "train_shares": "1,1"}
    flags["train_file"] = f"klue-nli,{several.folder / 'pairs.tsv'}"
    shown = prints(several.run, **{**several.files, **flags}, train_step=1)
    assert "batches: 50.0% of klue-nli, 50.0% of pairs.tsv\n" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        # Of the folder of the files.
        ({"train_file": "{}/pairs.tsv"}, "--train_shares needs several files in --train_file"),
        ({"train_file": "{}/pairs.tsv,none.tsv"}, "--train_file must be a file. Received: none"),
        ({"train_file": "{}/pairs.tsv", "train_shares": None, "objective": "both"}, "=both needs"),
        ({"train_file": "{0}/pairs.tsv,{0}/pairs.tsv", "train_shares": "3,1"}, "each file once"),
        (
            {"train_file": "{}/pairs.tsv,klue-nli", "task_name": "klue-nli"},
            "--data_dir must hold the training split of klue-nli, which --train_file lists. Rec",
        ),
        (
            {"train_file": "{}/pairs.tsv,csv", "task_name": "csv", "data_dir": "{}/dev_only"},
            "--data_dir must hold the training split of csv",
        ),
        ({"train_shares": "3,1"}, "--train_shares must be a number above 0 for each of the 4"),
        ({"train_shares": "3,1,0,1"}, "Received: 3,1,0,1"),
        ({"train_shares": "3,1,-1,1"}, "Received: 3,1,-1,1"),
        ({"train_shares": "3,1,nan,1"}, "Received: 3,1,nan,1"),
        ({"train_shares": "3,1,,1"}, "Received: 3,1,,1"),
        ({"objective": "ranking"}, "--objective=ranking needs pairs or triples without scores"),
        ({"objective": "cosine"}, "Received: pairs, triples, scored pairs, texts"),
        ({"eval_on": "train_part"}, "several files in --train_file need --dev_file"),
        ({"encoder_dropout": 0}, "single texts in --train_file need dropout"),
        ({"dev_file": None, "eval_every_steps": 1}, "need --dev_file to evaluate on"),
    ],
)
def test_what_several_files_refuse(several, fails, flags, message):
    flags = {n: v.format(several.folder) if isinstance(v, str) else v for n, v in flags.items()}
    (several.folder / "dev_only").mkdir()
    (several.folder / "dev_only/dev.csv").write_text("text,second\nfilm,good film\n")
    fails(several.run, message, **{**several.files, **flags})


@pytest.mark.usefixtures("eagerly")
def test_a_training_keeps_its_shares(several, fails):
    assert several.run(**several.files, train_step=1) == 0
    flags = {**several.files, "train_shares": "1,1,1,1", "train_step": 2}
    fails(several.run, "--train_shares must be 3,2,4,1", **flags)


@pytest.mark.usefixtures("eagerly")
def test_frozen_embeddings_stay(several):
    flags = {**several.files, "save_checkpoints_steps": 1}
    assert several.run(**flags, train_step=1) == 0
    start = arrays(several.output, 1)
    flags |= {"output_dir": several.folder / "frozen", "init_checkpoint": several.output}
    assert several.run(**flags, train_step=2, freeze_embeddings=True) == 0
    end = arrays(several.folder / "frozen", 2)
    tables = [name for name in start if re.fullmatch(r"bert/embeddings/\w+", name)]
    assert len(tables) == 3
    for name, value in end.items():
        if name.startswith("bert/") and "pooler" not in name and "adam" not in name:
            assert (value.tobytes() == start[name].tobytes()) is (name in tables), name
