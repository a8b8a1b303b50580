"""The flag files are complete jobs: they parse, and the two parts of a job fit together."""

from pathlib import Path

import pytest

from run_scripts.cli import parse, resolve_columns
from run_scripts.create_data import CreateDataFlags, choose_plan
from run_scripts.pretrain_flags import PretrainFlags, check_flags
from run_scripts.training_flags import choose_column, read_config

FLAGFILES = Path(__file__).parents[1] / "run_scripts" / "flagfiles"
JOBS = ("bert_mini", "albert_mini", "bert_base", "albert_base", "quickstart")


@pytest.mark.parametrize("job", JOBS)
def test_data_and_training_fit(job, monkeypatch):
    monkeypatch.chdir(FLAGFILES.parents[1])  # the paths in them are from the project's root
    given = ["--input_file=a", "--output_file=b"] if job == "quickstart" else []
    data = parse(CreateDataFlags, ["create", f"--flagfile={FLAGFILES}/{job}_data.flags", *given])
    plan = choose_plan(data)
    data = resolve_columns(data, plan.column)
    given = ["--input_file=b", "--output_dir=c", "--do_train"] if job == "quickstart" else []
    train = parse(PretrainFlags, ["run", f"--flagfile={FLAGFILES}/{job}_pretrain.flags", *given])
    column = choose_column(train)
    train = resolve_columns(train, column)
    check_flags(train)
    config = read_config(train, column)
    assert plan.column == column
    assert plan.objective == {"bert": "nsp", "albert": "sop"}[column]
    assert data.output_file == train.input_file
    assert data.max_seq_length == train.max_seq_length
    assert data.max_predictions_per_seq == train.max_predictions_per_seq
    assert data.max_predictions_per_seq >= round(data.max_seq_length * data.masked_lm_prob)
    assert train.max_seq_length <= config.max_position_embeddings
    assert config.type_vocab_size == 2


def test_no_flag_file_is_left_out():
    names = {f"{job}_{part}" for job in JOBS for part in ("data", "pretrain")}
    assert {path.stem for path in FLAGFILES.glob("*.flags")} == names
