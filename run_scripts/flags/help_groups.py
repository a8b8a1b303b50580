"""The order in which `--help` shows flags."""

# The heading for flags that no other heading lists.
GENERAL = "General"

# heading -> flags, in the order they are shown in; required flags come before all of them.
GROUPS = {
    "Model and tokenizer": (
        "model", "model_dir", "bert_config_file", "albert_config_file", "config_file",
        "init_checkpoint",
        "allow_missing", "vocab_file", "spm_model_file", "tokenizer", "tokenizer_dir",
        "tokenizers", "do_lower_case", "add_tokens", "new_rows", "max_position_embeddings",
        "new_positions", "layers", "pooling", "word_embeddings", "feature_layers",
        "freeze_encoder", "encoder_dropout", "classifier_dropout", "start_n_top", "end_n_top",
        "dropout_prob",
    ),
    "Data": (
        "benchmark", "task_name", "data_dir", "data_file", "train_file", "dev_file", "test_file",
        "predict_file",
        "train_articles", "predict_articles", "skip_bad_answers", "input_file",
        "input_format", "text_key", "split_sentences", "long_lines", "drop_duplicates",
        "strict_utf8", "output_file", "output_dir", "overwrite", "projector_dir",
        "compression", "corpus_gb", "compare", "text", "task_type", "text_column", "second_column",
        "encoding", "label_column", "id_column", "labels", "metrics", "high_only", "middle_only",
        "vocab_size",
        "analyser", "normalization", "unknown", "num_unused", "user_symbols", "character_coverage",
        "most_megabytes",
        "objective", "max_seq_length", "max_query_length", "max_qa_length", "doc_stride",
        "version_2_with_negative", "max_predictions_per_seq", "packing", "masking",
        "masked_lm_prob", "do_whole_word_mask", "ngram", "favor_shorter_ngram", "do_permutation",
        "random_next_sentence", "short_seq_prob", "dupe_factor", "bucket_boundaries",
        "train_feature_file", "predict_feature_file",
    ),
    "Training": (
        "lengths",
        "do_train", "train_batch_size", "num_train_steps", "num_train_epochs", "num_passes",
        "train_step",
        "num_warmup_steps", "warmup_proportion", "warmup_step", "start_warmup_step", "optimizer",
        "learning_rate", "poly_power", "class_weights", "max_train_examples", "num_seeds",
        "save_checkpoints_steps",
        "keep_checkpoint_max", "keep_checkpoint_every_steps", "save_summary_steps",
        "histogram_steps", "max_bad_steps", "profile_steps",
    ),
    "Evaluation, prediction, export": (
        "do_eval", "eval_on", "eval_input_file", "eval_batch_size", "max_eval_steps",
        "eval_every_steps", "patience", "early_stopping", "do_predict", "predict_split",
        "predict_format", "predict_batch_size",
        "guesses", "n_best_size", "max_answer_length", "null_score_diff_threshold",
        "google_answers", "export_dir", "threshold_to_export", "format", "max_shard_size",
        "card_file", "max_size",
    ),
    "Devices and memory": (
        "device", "ignore_compute_capability", "distribution_strategy", "num_gpus", "all_reduce",
        "all_reduce_precision", "precision", "xla", "compilation_cache_dir", "recompute",
        "attention", "gradient_accumulation_steps", "steps_per_loop", "batch_size", "num_workers",
        "mask_processes", "num_threads", "num_tasks", "task_index", "engine", "spark_master",
        "gpus", "gpu", "utilisation", "cores",
    ),
    GENERAL: ("random_seed",  "port"),
}  # fmt: skip

# How the help begins of a flag that exists only for Google's command lines.
COMPATIBILITY = "For command lines of Google's programs"
_COMPATIBLE = ("Accepted ", "Has no effect ", "Another name ", "Refused:")

# Flags of the reference programs that have an effect only on a TPU; shown only by --helpfull.
TPU = "For TPUs, without effect here"
TPU_FLAGS = (
    "tpu_name", "tpu_zone", "gcp_project", "master", "num_tpu_cores", "iterations_per_loop",
)  # fmt: skip

REQUIRED = "Required"

# Class of flags -> a command line, without the program.
EXAMPLES = {
    "BuildVocabFlags": "--input_file='data/*.txt' --output_dir=data/vocab --vocab_size=32000",
    "CreateDataFlags": "--input_file='data/*.txt' --output_file=output/train.tfrecord "
    "--tokenizer_dir=data/vocab --objective=sop --max_seq_length=128",
    "PretrainFlags": "--albert_config_file=run_scripts/flagfiles/albert_mini.json "
    "--input_file=output/train.tfrecord --output_dir=output/model --do_train --do_eval "
    "--train_batch_size=32 --learning_rate=5e-3 --num_train_steps=20000 --num_warmup_steps=500",
    "AdaptFlags": "--model_dir=output/model --tokenizer_dir=data/bank_vocab "
    "--output_dir=output/bank",
    "FillMasksFlags": "--text='나는 학교[MASK] 갔다.'",
    "ExploreFlags": "--model_dir=output/model --tokenizers=data/vocab,data/other_vocab",
    "ExtractFeaturesFlags": "--model_dir=output/model --input_file=sentences.txt "
    "--output_file=features.npz --layers=-1,-2 --pooling=mean",
    "ExportFlags": "--model_dir=output/model --output_dir=output/transformers --format=huggingface",
    "ClassifierFlags": "--task_name=nsmc --data_dir=data/nsmc --output_dir=output/nsmc "
    "--albert_config_file=output/model/albert_config.json --tokenizer_dir=data/vocab "
    "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval",
    "NerFlags": "--task_name=klue-ner --data_dir=data/klue-ner-v1.1 --output_dir=output/ner "
    "--albert_config_file=output/model/albert_config.json --tokenizer_dir=data/vocab "
    "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_eval",
    "SquadFlags": "--task_name=korquad --train_file=data/KorQuAD_v1.0_train.json "
    "--predict_file=data/KorQuAD_v1.0_dev.json --output_dir=output/korquad "
    "--bert_config_file=output/model/bert_config.json --tokenizer_dir=data/vocab "
    "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_predict",
    "RaceFlags": "--data_dir=data/RACE --output_dir=output/race "
    "--albert_config_file=albert_base/albert_config.json --spm_model_file=albert_base/30k.model "
    "--init_checkpoint=albert_base/model.ckpt-best",
    "SizesFlags": "--config_file=output/model/albert_config.json --lengths=128",
    "CorpusPlanFlags": "--corpus_gb=1,10,100 --model=bert_base --gpus=8",
    "PlanFlags": "--benchmark=glue --model=uncased_L-12_H-768_A-12 --data_dir=data/glue "
    "--output_dir=output/glue",
    "TableFlags": "--benchmark=glue --output_dir=output/glue",
}


def group_of(name, help, required):
    """The heading for a flag with this name and help text, required or not."""
    if required:
        return REQUIRED
    if name in ("use_tpu", *TPU_FLAGS, "use_one_hot_embeddings"):
        return TPU
    if help.startswith(_COMPATIBLE):
        return COMPATIBILITY
    return next((heading for heading, names in GROUPS.items() if name in names), GENERAL)
