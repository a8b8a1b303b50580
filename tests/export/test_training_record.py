"""How a model was trained is recorded stage by stage, whichever program trained it."""

import dataclasses
import json
import re

import pytest

from bert_common.errors import InputError
from model_formats.model_folder import stages_of
from model_formats.training_record import PATHS, add_counts, read_stages, write_stages
from run_scripts import classifier
from run_scripts.classifier import ClassifierFlags
from run_scripts.downstream.job import make_job
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.ner import NerFlags
from run_scripts.race import RaceFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.squad import SquadFlags
from tests.support.models.model_folders import export_folder, write_folder
from tests.support.programs import NO_DROPOUT, PretrainingJob
from tests.support.task_data import write_splits
from tests.support.vocabularies import SPECIAL, write_tokenizer

FIRST = {"program": "pre-training", "settings": {"learning_rate": 1e-4}}
SECOND = {"program": "fine-tuning", "settings": {}}


def test_a_run_follows_what_it_starts_from(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    rows = [(word, label) for word in ("나무", "바람") for label in ("좋음", "나쁨")]
    data = write_splits(tmp_path / "data", ("text", "label"), rows, train=(0, 4))
    flags = ["x", f"--model_dir={first}", f"--output_dir={second}", f"--data_dir={data}"]
    flags += ["--task_name=tsv", "--max_seq_length=16"]

    def job(*more):
        return make_job(parse(ClassifierFlags, [*flags, *more]), classifier.PROGRAM)

    write_folder(first)
    write_stages(first, [FIRST])
    new = job("--do_train")
    assert new.source == str(first / "model.ckpt-3")
    assert new.stages == new.earlier_stages == [FIRST]
    # One that resumes: its own stage is the last of the folder, whatever it began with.
    write_folder(second)
    write_stages(second, [FIRST, SECOND])
    resumed = job("--do_train")
    assert resumed.source == str(second / "model.ckpt-3")
    assert resumed.stages == [FIRST, SECOND] and resumed.earlier_stages == [FIRST]
    # An evaluation alone of other weights reads nothing of the training in --output_dir.
    assert job("--do_eval", f"--init_checkpoint={first}").source == str(first / "model.ckpt-3")
    assert stages_of(str(second / "best" / "model.ckpt-3")) == [FIRST, SECOND]


def test_nothing_is_written_where_nothing_is_known(tmp_path):
    write_stages(tmp_path, [])
    assert list(tmp_path.iterdir()) == [] and read_stages(tmp_path) == []


@pytest.mark.parametrize("content", [{}, [1], "x"])
def test_a_record_of_something_else(content, tmp_path):
    (tmp_path / "training.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="training.json must hold a list of objects"):
        read_stages(tmp_path)


def test_counts_of_several_data_sets():
    one = {"documents": 3, "sentences": 5, "words": "x", "settings": {}}
    assert add_counts([one]) == {"documents": 3, "sentences": 5}
    assert add_counts([one, {"documents": 4}]) == {"documents": 7}
    assert add_counts([one, {}]) == add_counts([]) == {}


@pytest.mark.parametrize("form", ["google", "huggingface", "keras"])
def test_an_export_holds_no_path(form, tmp_path):
    """It may be published: of a teacher it keeps the name of the folder."""
    write_folder(tmp_path / "in")
    settings = {"teacher_dir": f"{tmp_path}/models/teacher/", "distillation_weight": 0.25}
    write_stages(tmp_path / "in", [FIRST, {"program": "pre-training", "settings": settings}])
    export_folder(tmp_path / "in", tmp_path / "out", form)
    kept = {"program": "pre-training", "settings": {**settings, "teacher_dir": "teacher"}}
    assert read_stages(tmp_path / "out") == [FIRST, kept]
    for path in (tmp_path / "out").glob("*.*"):
        assert path.suffix == ".keras" or str(tmp_path).encode() not in path.read_bytes()
    # The model's own folder keeps it, for a run that resumes.
    assert read_stages(tmp_path / "in")[1]["settings"] == settings


def test_every_recorded_path_is_known():
    """Whatever a program records beside it is no path."""
    tasks = ClassifierFlags, NerFlags, SquadFlags, RaceFlags, SimilarityFlags
    fields = [field for flags in (PretrainFlags, *tasks) for field in dataclasses.fields(flags)]
    recorded = {f.name for f in fields if f.metadata["recorded"] and f.metadata["is_path"]}
    assert recorded == {*PATHS}


WORDS = [f"word{i}" for i in range(5, 60)]


@pytest.mark.slow
def test_the_programs_record_what_they_do(tmp_path):
    """Pre-training, its continuation, fine-tuning; all of it stands in the model card."""
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    write_tokenizer(tmp_path, [*SPECIAL, *WORDS], "full")
    assert job.run(num_train_steps=1, tokenizer_dir=tmp_path) == 0
    (first,) = read_stages(job.output)
    assert first["program"] == "pre-training" and first["corpus"] == {}  # records not described
    assert first["settings"]["num_train_steps"] == 1
    assert first["settings"]["learning_rate"] == 0.01
    # Going on in the same folder is the same stage.
    assert job.run(num_train_steps=2, tokenizer_dir=tmp_path) == 0
    (pretraining,) = read_stages(job.output)
    assert pretraining["settings"]["num_train_steps"] == 2
    rows = [(" ".join(WORDS[i : i + 8]), i % 2) for i in range(8)]
    data = write_splits(tmp_path / "data", ("text", "label"), rows, train=(0, 4), dev=(4, 8))
    tuned = tmp_path / "fine-tuned"
    flags = ["--task_name=tsv", "--do_train", "--do_eval", "--train_step=1", "--xla=off"]
    folders = [f"--model_dir={job.output}", f"--output_dir={tuned}", f"--data_dir={data}"]
    flags += ["--train_batch_size=4", "--max_seq_length=16"]
    assert classifier.main(["run", *flags, *folders]) == 0
    fine_tuning = {"program": "fine-tuning", "settings": {"train_batch_size": 4, "train_step": 1}}
    stages = read_stages(tuned)
    assert stages[0] == pretraining and len(stages) == 2
    assert fine_tuning["settings"].items() <= stages[1]["settings"].items()
    # Evaluating alone is no stage.
    again = [f"--output_dir={tuned}", f"--data_dir={data}", "--do_eval", "--xla=off"]
    assert classifier.main(["run", *again]) == 0
    assert read_stages(tuned) == stages
    # The export of what the program itself left, with the results of this step.
    card = (export_folder(tuned, tmp_path / "out") / "README.md").read_text()
    assert re.findall(r"^## (.*)", card, re.MULTILINE) == [
        "With transformers", "Pre-training: settings", "Fine-tuning: settings", "Task", "Network",
        "Evaluation",
    ]  # fmt: skip
    assert "| learning_rate | 0.01 |" in card and "| train_step | 1 |" in card
    (_,) = re.findall(r"^\| eval_accuracy \| [01]\.\d{4} \|$", card, re.MULTILINE)
