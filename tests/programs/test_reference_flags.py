"""Every flag of both reference repositories' programs is known here."""

import dataclasses

import pytest

from run_scripts import classifier, extract_features, race, squad
from run_scripts.flags import create_data as create_data_flags
from run_scripts.flags import pretrain as pretrain_flags

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
    "create_pretraining_data": create_data_flags.CreateDataFlags,
    "run_pretraining": pretrain_flags.PretrainFlags,
    "run_race": race.RaceFlags,
}


@pytest.mark.parametrize("program", REFERENCE_FLAGS)
def test_every_flag_is_known(program):
    ours = {field.name for field in dataclasses.fields(OURS[program])}
    assert set(REFERENCE_FLAGS[program].split()) - ours == set()
