"""Every flag of both reference repositories' programs is known here, with its default."""

import dataclasses

import pytest
from generated_pages.flags import PROGRAMS
from generated_pages.migration import STANDS_FOR
from generated_pages.reference_programs import PROGRAMS as REFERENCE_PROGRAMS

from run_scripts.flags.create_data import CreateDataFlags, choose_objective, resolve_defaults
from run_scripts.flags.declaration import PerModel, resolve_model_defaults
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags


@pytest.mark.parametrize("program", STANDS_FOR)
def test_every_flag_is_known(program):
    ours = {field.name for field in dataclasses.fields(PROGRAMS[program])}
    for reference in STANDS_FOR[program]:
        assert set(REFERENCE_PROGRAMS[reference]) - ours == set(), reference


# Not set here: what has no effect, and what the tokenizer says.
UNSET = {"iterations_per_loop", "num_tpu_cores", "input_file_mode", "do_lower_case"}
# What google-research/bert does, whose programs lack these flags.
BERT_DOES = {
    "run_pretraining": {
        "optimizer": "adamw", "poly_power": 1.0, "start_warmup_step": 0, "keep_checkpoint_max": 5,
        "masked_lm_budget": 0, "init_from_group0": False,
    },
    "create_pretraining_data": {
        "ngram": 1, "favor_shorter_ngram": True, "random_next_sentence": False,
        "do_permutation": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("model_type", ("bert", "albert"))
@pytest.mark.parametrize(
    "program, flags_class, resolve, given",
    (
        ("run_pretraining", PretrainFlags, resolve_model_defaults, ("input_file", "output_dir")),
        ("create_pretraining_data", CreateDataFlags, resolve_defaults, ("input_file",)),
    ),
)
def test_defaults_are_those_of_the_model_s_repository(
    program, flags_class, resolve, given, model_type
):
    flags = parse(flags_class, [program, *(f"--{name}=a" for name in given)])
    values = dataclasses.asdict(resolve(flags, model_type))
    expected = dict(REFERENCE_PROGRAMS[model_type, program])
    expected |= BERT_DOES[program] if model_type == "bert" else {}
    names = set(expected) - UNSET - set(given)
    assert len(names) > 12
    assert {name: values[name] for name in names} == {name: expected[name] for name in names}
    assert not [name for name, value in values.items() if isinstance(value, PerModel)]


def test_defaults_that_follow_other_flags():
    def resolved(*argv, model_type="bert"):
        values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a", *argv])
        return resolve_defaults(values, model_type)

    assert resolved("--packing").max_predictions_per_seq == 24
    assert resolved("--packing", model_type="albert").max_predictions_per_seq == 80
    assert resolved("--packing", "--max_predictions_per_seq=30").max_predictions_per_seq == 30
    assert resolved("--masking=dynamic").dupe_factor == 1
    assert resolved("--masking=dynamic", "--dupe_factor=3").dupe_factor == 3


def test_flags_of_one_reference_choose_its_model_type():
    """Other flags: test_create_data."""
    for arguments, model_type in (
        (["--spm_model_file=m"], "albert"),
        (["--spm_model_file=m", "--objective=nsp"], "bert"),
    ):
        values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a", *arguments])
        assert choose_objective(values).model_type == model_type
