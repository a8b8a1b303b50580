"""What the programs read where a flag has several spellings, or its effect depends on others."""

import pytest

from run_scripts.classifier import ClassifierFlags
from run_scripts.flags.parser import parse
from run_scripts.given_model import GivenModel
from run_scripts.race import RaceFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.similarity_data import train_names
from run_scripts.squad import SquadFlags


def read(flags_class, *argv):
    return parse(flags_class, ["program", "--data_dir=d", "--output_dir=o", *argv])


@pytest.mark.parametrize(
    "flags_class, name",
    ((ClassifierFlags, "MNLI"), (SimilarityFlags, "KLUE-STS"), (RaceFlags, "RACE")),
)
def test_a_task_in_any_case(flags_class, name):
    """As Google's programs, which run_race and run_classifier lower-case; their READMEs' MNLI."""
    assert read(flags_class, f"--task_name={name}").task_name == name.lower()


def test_other_names_of_flags():
    values = read(
        RaceFlags,
        "--num_keep_checkpoint=0", "--dropout_prob=0", "--early_stopping=2", "--eval_every_steps=9",
    )  # fmt: skip
    assert (values.keep_checkpoint_max, values.classifier_dropout, values.patience) == (0, 0, 2)
    values = read(RaceFlags, "--keep_checkpoint_max=7", "--patience=3", "--eval_every_steps=9")
    assert (values.keep_checkpoint_max, values.classifier_dropout, values.patience) == (7, 0.1, 3)


@pytest.mark.parametrize(
    "argv, expected",
    (
        ((), (True, True, None)),
        (("--do_predict",), (None, None, True)),
        (("--nodo_train",), (False, None, None)),
    ),
)
def test_what_race_does_by_itself(argv, expected):
    values = read(RaceFlags, *argv)
    assert (values.do_train, values.do_eval, values.do_predict) == expected


def test_a_comma_in_the_name_of_one_training_file(tmp_path):
    (tmp_path / "a,b.csv").touch()
    for path in (f"{tmp_path}/a,b.csv", rf"{tmp_path}/a\,b.csv"):
        values = read(SimilarityFlags, f"--train_file={path}")
        assert train_names(values) == [f"{tmp_path}/a,b.csv"]


@pytest.mark.parametrize("argv, expected", (((), None), (("--do_train",), "w/model.ckpt-1")))
def test_the_weights_that_run_squad_reads(argv, expected, tmp_path):
    """Without training they are the newest in --output_dir, if there are any."""
    argv = (*argv, f"--output_dir={tmp_path}", "--init_checkpoint=w/model.ckpt-1")
    assert GivenModel.of(read(SquadFlags, *argv)).checkpoint == "w/model.ckpt-1"
    (tmp_path / "model.ckpt-3.index").touch()
    assert GivenModel.of(read(SquadFlags, *argv)).checkpoint == expected
