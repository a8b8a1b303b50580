"""The program run_similarity: trains vectors, measures them, predicts, resumes."""

import json
import shutil

import numpy as np
import pytest

from bert_tf.checkpoint_files import list_checkpoints
from finetuning.similarity.data import Columns, SimilarityDataset, with_files
from korean_bert import load_model
from run_scripts.conversion.export_model import main as export_model
from run_scripts.similarity_data import read_split
from tests.support.programs import DROPOUT, arrays, assert_same, results
from tests.support.similarity_jobs import HEADERS, NO_FOLDER, SimilarityJob, rows_of, write
from tests.support.task_data import BAD, GOOD, read_table, squad_content, write_table
from tests.support.tiny_models import without_graphs

ALL = {"do_train": True, "do_eval": True, "do_predict": True, "eval_batch_size": 16}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trained with all flags that a folder remembers."""
    job = write(SimilarityJob(tmp_path_factory.mktemp("trained"), num_hidden_layers=1))
    flags = {"pooling": "max", "embedding_sizes": "16,8", "train_step": 80}
    assert job.run(**ALL, **flags, predict_split="dev") == 0
    return job


def test_cosines_of_scored_pairs(trained):
    found = results(trained.output)
    assert found["eval_spearman"] > 0.8 and found["eval_pearson"] > 0.9
    assert found["eval_spearman_16"] > 0.8 and found["eval_spearman_8"] > 0.8
    assert found["eval_pearson"] > found["eval_tf_idf_pearson"]
    header, *rows = read_table(trained.output / "predictions_dev.tsv")
    assert header == ["id", "text", "second", "score", "cosine"] and len(rows) == 16
    scores, cosines = np.array([row[3:] for row in rows], float).T
    assert np.corrcoef(scores, cosines)[0, 1] == pytest.approx(found["eval_pearson"], abs=1e-4)
    in_python = load_model(trained.output).predict([(row[1], row[2]) for row in rows])
    np.testing.assert_allclose([each.label for each in in_python], cosines, atol=1e-5)


def test_a_folder_remembers_its_vectors(trained, fails):
    before = read_table(trained.output / "predictions_dev.tsv")
    assert trained.again(do_eval=True, do_predict=True, predict_split="dev") == 0
    after = read_table(trained.output / "predictions_dev.tsv")
    assert [row[:4] for row in after] == [row[:4] for row in before]
    cosines = [np.array([row[4] for row in rows[1:]], float) for rows in (before, after)]
    np.testing.assert_allclose(*cosines, atol=2e-6, rtol=0)  # other graphs, rounded to six digits
    saved = json.loads((trained.output / "finetuning.json").read_text())
    expected = {"task": "similarity", "pooling": "max", "embedding_sizes": "16,8"}
    assert saved.items() >= {**expected, "normalize": True}.items()
    fails(trained.again, "--pooling must be what the model", do_eval=True, pooling="cls")


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("dev", ["pairs", "triples"])
def test_ranking(tmp_path, dev, prints):
    job = write(SimilarityJob(tmp_path), "triples", dev)
    shown = prints(job.run, do_eval=True, train_step=2)
    assert "\n  (eval: on dev)\n" in shown  # there is no baseline
    found = results(job.output)
    corpus = len({row[1] for row in rows_of(dev, 16, seed=1)})
    assert 1 / corpus <= found["eval_recall_at_10"] <= found["eval_recall_at_100"] == 1
    assert ("eval_triple_accuracy" in found) is (dev == "triples")
    assert found["eval_tf_idf_recall_at_100"] == 1 and "eval_spearman" not in found


@pytest.mark.usefixtures("eagerly")
def test_simcse_on_texts_measured_by_scores(tmp_path, fails):
    """It needs the dropout of the training: --encoder_dropout replaces the configuration's."""
    without = write(SimilarityJob(tmp_path), "texts", "scored")
    assert without.run(train_step=1, encoder_dropout=0.1) == 0
    job = write(SimilarityJob(tmp_path, hidden_dropout_prob=0.1), "texts", "scored")
    job.output = tmp_path / "with"
    assert job.run(do_eval=True, train_step=2) == 0
    assert "eval_spearman" in results(job.output)
    said = "--objective=simcse needs dropout: --encoder_dropout above 0"
    fails(job.run, said, train_step=1, encoder_dropout=0)


@pytest.mark.usefixtures("eagerly")
def test_after_simcse_training_pairs_are_predicted_as_pairs(tmp_path):
    """Only a training compares each text with itself."""
    job = write(SimilarityJob(tmp_path, hidden_dropout_prob=0.1), "pairs", "pairs")
    assert job.run(train_step=1, objective="simcse") == 0
    assert job.again(do_predict=True, predict_split="train", objective="simcse") == 0
    rows = read_table(job.output / "predictions_train.tsv")[1:]
    assert [row[1:3] for row in rows] == read_table(job.data / "train.tsv")[1:]


def write_korean_questions(path, encoding):
    """Two questions about a text, whose characters are all in cp949."""
    content = squad_content()
    (paragraph, *_) = content["data"][0]["paragraphs"]
    paragraph["qas"] = paragraph["qas"][:2]
    content["data"][0]["paragraphs"] = [paragraph]
    path.write_bytes(json.dumps(content, ensure_ascii=False).encode(encoding))
    return path


@pytest.mark.parametrize("encoding, given", (("utf-16", None), ("utf-8-sig", "utf-8")))
def test_questions_in_another_encoding(tmp_path, encoding, given):
    """They are known as questions, too."""
    path = write_korean_questions(tmp_path / "q.json", encoding)
    dataset = with_files(SimilarityDataset("files", {}), {"dev": str(path)}, Columns(), given)
    found, _ = read_split(dataset, "dev", "")
    assert len(found) == 2 and found[1].texts[0] == "언제?"


@pytest.mark.usefixtures("eagerly")
def test_the_encoding_of_the_flag_is_of_questions_too(tmp_path, fails):
    job = write(SimilarityJob(tmp_path))
    path = write_korean_questions(tmp_path / "q.json", "cp949")
    flags = {**NO_FOLDER, "train_file": path, "train_step": 1}
    fails(job.run, "q.json, line 1: the text must be UTF-8", **flags, encoding="utf-8")
    flags |= {"dev_file": path, "do_predict": True, "predict_split": "dev"}
    assert job.run(**flags, encoding="cp949") == 0
    _, *rows = read_table(job.output / "predictions_dev.tsv")
    assert [row[1] for row in rows] == ["누구가?", "언제?"] and rows[0][2].startswith("임종석은")


@pytest.mark.slow
@pytest.mark.parametrize(("where", "step"), [("any", 5), ("index", 4)])
def test_a_run_that_was_killed_ends_as_one_that_was_not(tmp_path, where, step):
    """kill -9 between two updates, and amid a checkpoint; ranking in parts, with dropout."""
    job = write(SimilarityJob(tmp_path, **DROPOUT), "triples", "pairs")
    flags = {"train_step": 9, "save_checkpoints_steps": 2, "gradient_accumulation_steps": 2}
    assert job.run(**flags, output_dir=tmp_path / "whole") == 0
    job.kill(where, step, **flags)
    assert 0 < list_checkpoints(job.output)[-1] < 9
    assert job.run(**flags) == 0
    assert_same(arrays(job.output, 9), arrays(tmp_path / "whole", 9))


@pytest.fixture(scope="module")
def hub(trained, tmp_path_factory):
    """The export of what was trained, as transformers reads it."""
    folder = tmp_path_factory.mktemp("hub") / "hub"
    flags = (f"--model_dir={trained.output}", f"--output_dir={folder}", "--format=huggingface")
    assert export_model(["export_model.py", *flags]) == 0
    return folder


@pytest.mark.usefixtures("eagerly")
def test_vectors_are_pooled_on_as_in_the_model_that_is_started_from(trained, hub, tmp_path):
    """One that run_similarity trained, and what transformers reads of it; a flag has its way."""
    start = {"bert_config_file": None, "vocab_file": None, "model_dir": trained.output}
    for more, pooling in (({}, "max"), ({"model_dir": hub}, "max"), ({"pooling": "cls"}, "cls")):
        output = tmp_path / ("-".join(more) or "own")
        assert trained.run(**{**start, "train_step": 1, "output_dir": output, **more}) == 0
        assert json.loads((output / "finetuning.json").read_text())["pooling"] == pooling


@pytest.fixture
def of_hub(trained, hub, tmp_path):
    """A job on the data of what was trained whose flags name the export alone."""
    job = SimilarityJob(tmp_path)
    job.data, own = trained.data, job.flags
    job.flags = lambda: {**own(), "vocab_file": None, "bert_config_file": None, "model_dir": hub}
    return job


def test_what_was_exported_is_evaluated(trained, of_hub, fails):
    """At the sizes that were trained, and at no others, as the folder that was exported."""
    evaluate = {"do_train": False, "do_eval": True}
    assert of_hub.run(**evaluate) == 0
    found, expected = results(of_hub.output), results(trained.output)
    for size in ("", "_16", "_8"):
        name = f"eval_spearman{size}"
        assert found[name] == pytest.approx(expected[name], abs=1e-6)
    assert of_hub.run(**evaluate, embedding_sizes="8, 16") == 0
    for run in (of_hub.run, trained.again):
        said = "was trained with: 16,8. Received: 16,4"
        fails(run, said, **evaluate, embedding_sizes="16,4")


@pytest.mark.parametrize("flags", [{"do_train": False, "do_eval": True}, {"do_train": True}])
def test_vectors_that_are_not_computed_are_neither_measured_nor_trained(
    of_hub, hub, tmp_path, fails, flags
):
    """As `embed` refuses them, unless their pooling is given."""
    folder = shutil.copytree(hub, tmp_path / "hub")
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "lasttoken"}')
    flags |= {"model_dir": folder, "train_step": 1}
    fails(of_hub.run, "must choose one pooling of cls, mean, max; otherwise", **flags)
    with without_graphs():
        assert of_hub.run(**flags, pooling="mean") == 0


@pytest.mark.usefixtures("eagerly")
def test_what_was_exported_cuts_texts_where_it_was_trained_to(of_hub, hub, tmp_path):
    """As Python does; a flag has its way."""
    texts = [f"{GOOD[0]} " * 15, f"{GOOD[0]} " * 15 + BAD[0]]
    write_table(tmp_path / "dev.tsv", HEADERS["pairs"], [texts])
    flags = {"data_dir": tmp_path, "do_train": False, "do_predict": True, "predict_split": "dev"}
    for length in (None, 17, 18):
        assert of_hub.run(**flags, max_seq_length=length) == 0
        cosine = float(read_table(of_hub.output / "predictions_dev.tsv")[1][-1])
        assert (cosine == 1) is (length != 18)
    assert load_model(hub).predict([texts])[0].label == pytest.approx(1, abs=1e-6)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    ("files", "flags", "split"),
    [
        ({"train": "pairs", "dev": "scored"}, {"eval_on": "train_part"}, "train_part"),
        ({"train": "pairs", "dev": "texts"}, {}, "held_out"),
        ({"train": "pairs", "dev": None, "test": "scored"}, {}, "held_out"),
    ],
)
def test_a_part_of_train_chooses_the_best(tmp_path, prints, files, flags, split):
    """By what its own form has, whatever dev and test are."""
    job = write(SimilarityJob(tmp_path), **files)
    assert f"\n{split}: " in prints(job.run, **flags, eval_every_steps=1, train_step=1)
    assert (job.output / "best").exists()


TEXTS = "single texts in --train_file need --dev_file"


@pytest.mark.parametrize(
    ("splits", "flags", "messages"),
    [
        ({"train": "texts", "dev": None}, {"eval_on": "train_part"}, [TEXTS]),
        ({"train": "texts", "dev": None}, {"eval_every_steps": 1}, [TEXTS]),
        (
            {"train": "pairs", "dev": "texts"},
            {"do_eval": True},
            [
                "--do_eval needs dev or test with pairs (--do_train --eval_on=train_part",
                "Received: train with pairs, dev with texts",
            ],
        ),
        # They have no cosine.
        (
            {"train": "pairs", "dev": "texts", "test": "texts"},
            {"do_predict": True},
            ["--do_predict needs pairs", "Received: test, single texts"],
        ),
        (
            {"train": "pairs", "dev": "texts", "test": "texts"},
            {"do_predict": True, "predict_split": "dev"},
            ["--do_predict needs pairs", "Received: dev, single texts"],
        ),
    ],
)
def test_forms_that_are_refused(tmp_path, fails, splits, flags, messages):
    job = write(SimilarityJob(tmp_path, hidden_dropout_prob=0.1), **splits)
    fails(job.run, *messages, **flags, train_step=1)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"objective": "ranking"}, "--objective=ranking needs pairs or triples without scores"),
        ({"objective": "simcse"}, "--objective=simcse needs dropout"),
        (
            {"do_predict": True, "predict_split": "train"},
            "--predict_split=train needs a run without --do_train",
        ),
        ({"embedding_sizes": "16,x"}, "--embedding_sizes must be numbers from 1 to 32"),
        ({"embedding_sizes": "33"}, "--embedding_sizes must be numbers from 1 to 32"),
        ({"task_name": "nsmc"}, "--task_name must be one of mnli"),
        ({"data_dir": None}, "--data_dir must be given, or --train_file"),
        ({"text_column": "x"}, "--text_column must name a column"),
    ],
)
def test_what_is_refused(tmp_path, fails, flags, message):
    fails(write(SimilarityJob(tmp_path)).run, message, **flags)
