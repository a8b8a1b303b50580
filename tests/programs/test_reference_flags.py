"""Every flag of both reference repositories' programs is known here, with its default."""

import dataclasses

import pytest

from run_scripts import classifier, extract_features, race, squad
from run_scripts.flags.create_data import CreateDataFlags, choose_objective, resolve_defaults
from run_scripts.flags.declaration import PerModel, resolve_model_defaults
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags

# Of google-research/bert and google-research/albert together, run_squad_v1 and _v2 in run_squad.
REFERENCE_FLAGS = {
    "run_classifier": """
        albert_config_file albert_hub_module_handle bert_config_file cached_dir data_dir
        do_eval do_lower_case do_predict do_train eval_batch_size export_dir gcp_project
        init_checkpoint iterations_per_loop keep_checkpoint_max learning_rate master
        max_seq_length num_tpu_cores num_train_epochs optimizer output_dir
        predict_batch_size save_checkpoints_steps spm_model_file task_name
        threshold_to_export tpu_name tpu_zone train_batch_size train_step use_tpu vocab_file
        warmup_proportion warmup_step
    """,
    "run_squad": """
        albert_config_file albert_hub_module_handle bert_config_file do_lower_case
        do_predict do_train doc_stride dropout_prob end_n_top export_dir gcp_project
        init_checkpoint iterations_per_loop learning_rate master max_answer_length
        max_query_length max_seq_length n_best_size null_score_diff_threshold num_tpu_cores
        num_train_epochs output_dir predict_batch_size predict_feature_file
        predict_feature_left_file predict_file save_checkpoints_steps spm_model_file
        start_n_top tpu_name tpu_zone train_batch_size train_feature_file train_file
        use_einsum use_tpu verbose_logging version_2_with_negative vocab_file
        warmup_proportion
    """,
    "extract_features": """
        batch_size bert_config_file do_lower_case init_checkpoint input_file layers master
        max_seq_length num_tpu_cores output_file use_one_hot_embeddings use_tpu vocab_file
    """,
    "create_pretraining_data": """
        do_lower_case do_permutation do_whole_word_mask dupe_factor favor_shorter_ngram
        input_file input_file_mode masked_lm_prob max_predictions_per_seq max_seq_length
        ngram output_file random_next_sentence random_seed short_seq_prob spm_model_file
        vocab_file
    """,
    "run_pretraining": """
        albert_config_file bert_config_file do_eval do_train eval_batch_size gcp_project
        init_checkpoint init_from_group0 input_file iterations_per_loop keep_checkpoint_max
        learning_rate masked_lm_budget master max_eval_steps max_predictions_per_seq
        max_seq_length num_tpu_cores num_train_steps num_warmup_steps optimizer output_dir
        poly_power save_checkpoints_steps start_warmup_step tpu_name tpu_zone
        train_batch_size use_tpu
    """,
    "run_race": """
        albert_config_file albert_hub_module_handle data_dir do_eval do_lower_case
        do_predict do_train dropout_prob eval_batch_size eval_file gcp_project high_only
        init_checkpoint iterations_per_loop learning_rate master max_qa_length
        max_seq_length middle_only num_keep_checkpoint num_tpu_cores output_dir
        predict_batch_size predict_file save_checkpoints_steps spm_model_file task_name
        tpu_name tpu_zone train_batch_size train_file train_step use_tpu vocab_file
        warmup_step
    """,
}
OURS = {
    "run_classifier": classifier.ClassifierFlags,
    "run_squad": squad.SquadFlags,
    "extract_features": extract_features.ExtractFeaturesFlags,
    "create_pretraining_data": CreateDataFlags,
    "run_pretraining": PretrainFlags,
    "run_race": race.RaceFlags,
}


@pytest.mark.parametrize("program", REFERENCE_FLAGS)
def test_every_flag_is_known(program):
    ours = {field.name for field in dataclasses.fields(OURS[program])}
    assert set(REFERENCE_FLAGS[program].split()) - ours == set()


# Each default for BERT and for ALBERT.
PRETRAIN_DEFAULTS = {
    "max_seq_length": (128, 512),
    "max_predictions_per_seq": (20, 20),
    "do_train": (False, True),
    "do_eval": (False, False),
    "train_batch_size": (32, 4096),
    "eval_batch_size": (8, 64),
    "learning_rate": (5e-5, 0.00176),
    "num_train_steps": (100000, 125000),
    "num_warmup_steps": (10000, 3125),
    "save_checkpoints_steps": (1000, 5000),
    "optimizer": ("adamw", "lamb"),
    "poly_power": (1.0, 1.0),
    "start_warmup_step": (0, 0),
    "keep_checkpoint_max": (5, 5),
    "max_eval_steps": (100, 100),
    "use_tpu": (False, False),
    "masked_lm_budget": (0, 0),
    "init_from_group0": (False, False),
    **dict.fromkeys(
        ("init_checkpoint", "tpu_name", "tpu_zone", "gcp_project", "master"), (None, None)
    ),
}
CREATE_DATA_DEFAULTS = {
    "max_seq_length": (128, 512),
    "do_whole_word_mask": (False, True),
    "dupe_factor": (10, 40),
    "ngram": (1, 3),  # google-research/bert masks single pieces
    "max_predictions_per_seq": (20, 20),
    "masked_lm_prob": (0.15, 0.15),
    "short_seq_prob": (0.1, 0.1),
    "random_seed": (12345, 12345),
    "favor_shorter_ngram": (True, True),
    "random_next_sentence": (False, False),
    "do_permutation": (False, False),
}


MODEL_TYPES = ("bert", "albert")


def check_defaults(values, defaults, model_type):
    """The values of a command line without these flags are the defaults of the model."""
    values = dataclasses.asdict(values)
    expected = {name: both[MODEL_TYPES.index(model_type)] for name, both in defaults.items()}
    assert {name: values[name] for name in expected} == expected
    assert not [name for name, value in values.items() if isinstance(value, PerModel)]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_defaults_of_run_pretraining(model_type):
    values = parse(PretrainFlags, ["run_pretraining", "--input_file=a", "--output_dir=b"])
    check_defaults(resolve_model_defaults(values, model_type), PRETRAIN_DEFAULTS, model_type)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_defaults_of_create_pretraining_data(model_type):
    values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a"])
    check_defaults(resolve_defaults(values, model_type), CREATE_DATA_DEFAULTS, model_type)


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
    for arguments, model_type in (
        (["--vocab_file=v", "--dupe_factor=3"], "bert"),
        (["--spm_model_file=m"], "albert"),
        (["--vocab_file=v", "--ngram=3"], "albert"),
        (["--vocab_file=v", "--norandom_next_sentence"], "albert"),  # given, though a default
        (["--vocab_file=v", "--objective=sop"], "albert"),
        (["--spm_model_file=m", "--objective=nsp"], "bert"),
    ):
        values = parse(CreateDataFlags, ["create_pretraining_data", "--input_file=a", *arguments])
        assert choose_objective(values).model_type == model_type
