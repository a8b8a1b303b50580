"""A teacher in run_pretraining and in the downstream programs, and what is refused of one."""

import dataclasses
import os
import shutil
import unicodedata

import numpy as np
import pytest

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_tf.checkpoint import write_arrays
from bert_tf.input.record_checks import CHECKED_RECORDS
from bert_tf.memory_estimate import RUNTIME_BYTES, estimate_bytes, teacher_bytes
from model_formats.model_folder import ModelFolder
from run_scripts.flags.distillation import GivenTeacher, check_task
from tests.support.models.model_folders import change_json
from tests.support.programs import (
    DROPOUT,
    NO_DROPOUT,
    PACKED_SIZES,
    RUN,
    ClassifierJob,
    PretrainingJob,
    arrays,
    assert_kills_change_nothing,
    curves,
    results,
)
from tests.support.record_files import PACKED, PACKED_DYNAMIC, make_files
from tests.support.tiny_models import without_graphs, write_config
from tests.support.vocabularies import SPECIAL, write_tokenizer

WIDE = {**NO_DROPOUT, "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2}
PIECES = [*SPECIAL, *map(str, range(55))]
MINILM = {"distillation": "minilm", "relation_heads": 4, "teacher_layer": 1}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """The folder of a pre-trained model of two wider layers."""
    job = PretrainingJob(tmp_path_factory.mktemp("teacher"), **WIDE)
    with without_graphs():
        assert job.run(num_train_steps=2) == 0
    return job.output


@pytest.fixture
def job(tmp_path, teacher):
    """A job whose flags name the teacher."""
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    own = job.flags
    job.flags = lambda: {**own(), "teacher_dir": teacher}
    return job


def losses(folder, name):
    """The values of a curve."""
    return [value for _, value in curves(folder)[f"loss/{name}"]]


@pytest.mark.usefixtures("eagerly")
def test_a_student_of_logits(job, teacher, prints, fails):
    before = arrays(teacher, 2)
    more = {"num_train_steps": 2, "save_summary_steps": 1, "distillation_weight": 0.25}
    out = prints(job.run, **more, do_eval=True)
    assert f"teacher: {teacher}/model.ckpt-2, its logits at temperature 2, weight 0.25" in out
    found = results(job.output)
    expected = found["masked_lm_loss"] + found["next_sentence_loss"]
    assert found["loss"] == pytest.approx(expected, rel=1e-6)
    names = ("total", "masked_lm", "next_sentence", "distillation")
    for total, words, pairs, soft in zip(*(losses(job.output, n) for n in names), strict=True):
        assert soft > 0
        assert total == pytest.approx(0.75 * (words + pairs) + 0.25 * soft, rel=0.02)
    assert not any("teacher" in name for name in arrays(job.output, 2))
    np.testing.assert_equal(arrays(teacher, 2), before)
    recorded = ModelFolder(str(job.output)).stages[-1]["settings"]
    assert recorded["teacher_dir"] == str(teacher) and recorded["distillation_weight"] == 0.25
    assert "distillation_weight" not in ModelFolder(str(teacher)).stages[-1]["settings"]
    # Resumed, the teacher must be the same, and so must be what it teaches.
    said = "--distillation_weight must be 0.25, with which the training in"
    fails(job.run, said, **{**more, "distillation_weight": None})
    other = shutil.copytree(teacher, job.folder / "other")
    said = f"--teacher_dir must be {teacher}, with which the training in"
    fails(job.run, said, **more, teacher_dir=other)
    more["teacher_dir"] = f"{teacher}/./"  # the same, spelt otherwise
    assert "already at step 2 of 2" in prints(job.run, **more)


def test_a_teacher_is_not_added_later(tmp_path, teacher, fails):
    job = PretrainingJob(tmp_path, **WIDE)
    shutil.copytree(teacher, job.output)
    said = "--teacher_dir must not be given: the training in"
    fails(job.run, said, num_train_steps=3, teacher_dir=teacher)


@pytest.mark.usefixtures("eagerly")
def test_a_student_of_relations(tmp_path, teacher, prints):
    """In packed rows whose masks are drawn while training; it drops tokens."""
    job = PretrainingJob(tmp_path, PACKED_DYNAMIC, **NO_DROPOUT, num_hidden_layers=2)
    flags = {**PACKED_SIZES, "mask_processes": 0, "num_train_steps": 2, "save_summary_steps": 1}
    flags |= {"token_dropping": 0.25, **MINILM, "teacher_dir": teacher}
    flags |= {"distillation_weight": 1.0, "distillation_relations": "qk,vv"}
    out = prints(job.run, **flags)
    assert "the relations qk, vv of layer 1 in 4 heads, weight 1" in out
    assert "layers 1 to 1 of 2 compute 24 of 32 tokens" in out
    found = losses(job.output, "distillation")
    assert min(found) > 0 and found == pytest.approx(losses(job.output, "total"), rel=1e-4)


@pytest.mark.slow
def test_a_killed_student_ends_as_one_that_was_never_stopped(job):
    job.configure(**DROPOUT)
    assert_kills_change_nothing(job, {**RUN, **MINILM}, [8])


@pytest.mark.slow
@pytest.mark.parametrize("flags", ({}, MINILM), ids=str)
@pytest.mark.parametrize("precision", ("bfloat16", "float16"))
def test_other_precisions_and_xla_and_two_devices(job, flags, precision):
    flags = {**flags, "precision": precision, "num_train_steps": 4, "save_summary_steps": 1}
    assert job.run(**flags, xla="on", distribution_strategy="mirrored") == 0
    values = losses(job.output, "distillation")
    assert all(np.isfinite(values)) and min(values) > 0


REFUSED = {
    "other rows": ({"bert_config_file": "vocab_size"}, "with as many rows in its table, 61"),
    "rows": ({"bert_config_file": "vocab_size", **MINILM}, "the same vocabulary: 61 ids. Received"),
    "heads": ({**MINILM, "relation_heads": 5}, "--relation_heads must divide the width"),
    "layer": ({**MINILM, "teacher_layer": 3}, "--teacher_layer must be at most the layers"),
    "relations": ({**MINILM, "distillation_relations": "qv"}, "--distillation_relations must be"),
    "twice": ({**MINILM, "distillation_relations": "vv,vv"}, "--distillation_relations must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_teach(job, case, fails):
    flags, expected = REFUSED[case]
    if "bert_config_file" in flags:
        flags = {**flags, "bert_config_file": write_config(job.folder / "more.json", vocab_size=61)}
    fails(job.run, expected, **flags)


@pytest.mark.parametrize("name", ("output_dir", "export_dir"))
def test_a_teacher_is_not_written_over(job, teacher, fails, name):
    """Its configuration would be the student's, which would learn of itself once it resumes."""
    same = shutil.copytree(teacher, job.folder / "same")
    for path in same.glob("model.ckpt-2.*"):  # the weights that an --export_dir holds
        path.rename(same / path.name.replace("-2", ""))
    said = f"--{name} must be another folder than the model's of --teacher_dir"
    fails(job.run, said, teacher_dir=f"{same}/.", **{name: same})


@pytest.mark.parametrize(
    "change, words",
    (
        ({"max_position_embeddings": 8}, "at most max_position_embeddings of the teacher"),
        ({"type_vocab_size": 1}, "segment_ids must be in 0..0 (type_vocab_size of the model, or"),
    ),
    ids=str,
)
def test_a_teacher_of_fewer_positions_or_token_types(job, teacher, fails, change, words):
    less = shutil.copytree(teacher, job.folder / "less")
    change_json(less / "bert_config.json", **change)
    fails(job.run, words, teacher_dir=less)
    assert not list(job.output.glob("*.json"))


def test_a_later_record_that_the_teacher_has_no_positions_for(job, teacher, fails):
    """Rows are packed, and only the first of a file are read before training."""
    less = shutil.copytree(teacher, job.folder / "less")
    change_json(less / "bert_config.json", max_position_embeddings=8)
    weights = arrays(less, 2)
    name = "bert/embeddings/position_embeddings"
    write_arrays(str(less / "model.ckpt-2"), {**weights, name: weights[name][:8]})

    def change(number, row):
        if number == CHECKED_RECORDS:
            row["position_ids"] = list(range(16))

    for file in job.files:
        os.remove(file)
    make_files(job.folder, (CHECKED_RECORDS + 1,), PACKED, change=change)
    said = f"part-0.tfrecord, record {CHECKED_RECORDS + 1}: position_ids must be in 0..7"
    with without_graphs():
        fails(job.run, said, teacher_dir=less)


def test_a_teacher_with_another_tokenizer(job, teacher, fails):
    own, other = job.folder / "own", shutil.copytree(teacher, job.folder / "other")
    write_tokenizer(own, PIECES, "full", do_lower_case=False)
    write_tokenizer(other, [*PIECES[:-1], "x"], "full", do_lower_case=False)
    flags = {"teacher_dir": other, "tokenizer_dir": own}
    words = "the same vocabulary: 60 tokens", "with 60, 59 of them the same"
    fails(job.run, *words, **flags)
    (other / "tokenizer_config.json").unlink()
    fails(job.run, "error: the tokenizer of --teacher_dir: a folder that", **flags)


def test_a_teacher_is_in_the_estimate(job, teacher):
    """Its weights, and of relations their arrays; as the line before training says."""
    config = ModelFolder(str(teacher)).config
    one, two = (teacher_bytes(config, rows, 128, 20) for rows in (1, 2))
    weights = 4 * sum(v.size for n, v in arrays(teacher, 2).items() if "adam" not in n)
    assert one > weights and one < two < 2 * one
    plain, relations = (teacher_bytes(config, 8, 128, relations=n) for n in (0, 12))
    assert relations - plain == 3 * 4 * 8 * 12 * 128 * 128
    assert one < RUNTIME_BYTES < estimate_bytes(config, 1, 128, 20)
    given = GivenTeacher(ModelFolder(str(teacher)), 0.5, 1.0)
    blocks, full = (given.bytes_beside(8, 2048, 20, "float32", way) for way in (True, False))
    assert blocks < full / 2


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A job on sentences that are good or bad, and the folder of a fine-tuned teacher."""
    job = ClassifierJob(tmp_path_factory.mktemp("classifier"), num_hidden_layers=2)
    job.with_sentences(64, 16)
    assert job.run(output_dir=job.folder / "teacher") == 0
    return job


def test_a_student_classifies(classifier, prints, fails):
    job, teacher, student = classifier, classifier.folder / "teacher", classifier.folder / "student"
    write_config(job.folder / "small.json", hidden_size=16, num_attention_heads=2)
    flags = {
        "bert_config_file": job.folder / "small.json", "teacher_dir": teacher,
        "distillation_weight": 0.9, "do_eval": True, "save_summary_steps": 5,
    }  # fmt: skip
    shown = prints(job.run, **flags, output_dir=student)
    assert "its logits at temperature 2, weight 0.9" in shown
    assert results(student)["eval_accuracy"] > 0.8
    drawn = losses(student, "distillation")
    assert 0 < drawn[-1] < drawn[0]
    assert ModelFolder(str(student)).stages[-1]["settings"]["teacher_dir"] == str(teacher)
    flags["output_dir"] = job.folder / "odd"
    said = "the same labels in the same order, good,bad. Received: "
    fails(job.run, said, **flags, labels="good,bad")
    said = "a model with the same head (several labels: True)"
    fails(job.run, said, **flags, task_type="multi_label")


def test_tags_may_be_spelled_in_jamo(tmp_path):
    """As macOS spells them, and as models of transformers and of earlier versions have them."""
    tags = ("O", "B-인물", "I-인물")
    jamo = unicodedata.normalize("NFD", ",".join(tags))
    write_json(tmp_path / "finetuning.json", {"task": "ner", "labels": jamo})
    teacher = GivenTeacher(ModelFolder(str(tmp_path)), 0.5, 1.0)
    check_task(teacher, "ner", tags, {})
    with pytest.raises(InputError, match="same labels in the same order"):
        check_task(teacher, "ner", tags[::-1], {})


def test_teachers_of_other_tasks(classifier, teacher):
    model = GivenTeacher(ModelFolder(str(classifier.folder / "teacher")), 0.5, 1.0)
    with pytest.raises(InputError, match="for the same task, ner. Received: .*of classification"):
        check_task(model, "ner", ("O",), {})
    other = dataclasses.replace(model, folder=ModelFolder(str(teacher)))
    with pytest.raises(InputError, match="same task, classification. Received: .*of pretraining"):
        check_task(other, "classification", ("bad", "good"), {})
