"""Declares the flags of run_pretraining, with the checks that need no TensorFlow."""

import dataclasses
import warnings

from bert_common.errors import InputError
from bert_tf.names import OPTIMIZER_NAMES
from create_pretraining_data.records.record_format import RecordFormat
from model_formats.pretraining_objectives import MASKED_WORDS, OBJECTIVES, REPLACED_TOKENS
from run_scripts.flags import groups
from run_scripts.flags.declaration import INT32_MAX, PerModel, is_given, redeclare
from run_scripts.flags.distillation import PretrainingTeacherFlags
from run_scripts.flags.number_lists import ascends, read_numbers
from run_scripts.flags.training import TrainingFlags, read_profile_steps


@dataclasses.dataclass(frozen=True)
class PretrainFlags(PretrainingTeacherFlags, TrainingFlags):
    """Pre-trains BERT, ALBERT or ELECTRA on the records of create_pretraining_data.py.

    Give --config_file (or, as in Google's programs, --bert_config_file or --albert_config_file), or
    --model_dir to continue from a model. That flag decides whether BERT, ALBERT or ELECTRA is
    trained, and so whether the defaults of google-research/bert, /albert or /electra apply. A run
    that was stopped resumes from the newest checkpoint in --output_dir when it is started again."""

    EXAMPLE = (
        "--albert_config_file=run_scripts/flagfiles/albert_mini.json "
        "--input_file=output/train.tfrecord --output_dir=output/model --do_train --do_eval "
        "--train_batch_size=32 --learning_rate=5e-3 --num_train_steps=20000 "
        "--num_warmup_steps=500"
    )

    input_file: str = groups.FILES.required(
        "The TFRecord files to train on: comma-separated paths or globs.",
        is_input=True,
        is_path=True,
    )
    init_checkpoint: str | None = redeclare(
        TrainingFlags,
        "init_checkpoint",
        help="The weights to start from: a checkpoint, a safetensors file, or a folder with "
        "either. Default: the weights in --model_dir, else new random weights.",
    )
    allow_missing: str = groups.MODEL.flag(
        "",
        "Comma-separated prefixes of the variable names that --init_checkpoint may lack, such as "
        "cls/ for the pre-training heads. Missing variables are initialized as in a new model.",
    )
    vocab_file: str = groups.TOKENIZER.input_file(
        "The vocabulary that the record files were made with. It must not have more tokens "
        "than vocab_size in the configuration. If the configuration lacks vocab_size, the "
        "number of tokens in this file is used.",
        not_with=("tokenizer_dir",),
    )
    tokenizer_dir: str = groups.TOKENIZER.input_folder(
        "The folder of the tokenizer that the record files were made with. The program copies"
        " this tokenizer into --output_dir. Default: the tokenizer in --model_dir, else the "
        "one beside the record files."
    )
    do_lower_case: bool = groups.TOKENIZER.optional(
        "Whether the tokenizer in --model_dir lower-cases text. Only for folders without "
        "tokenizer_config.json. Default: off if the folder's name or vocabulary indicates a "
        "cased model, else on."
    )
    max_seq_length: int = groups.ROWS.flag(
        PerModel(128, {"albert": 512}),
        "The length of the examples in tokens. If create_pretraining_data wrote a JSON file "
        "beside the record files, the default is the length in that JSON file.",
        least=1,
        recorded=True,
    )
    max_predictions_per_seq: int = groups.ROWS.flag(
        PerModel(20),
        "The maximum number of predicted tokens in an example. If create_pretraining_data "
        "wrote a JSON file beside the record files, the default is the number in that JSON "
        "file.",
        least=1,
        recorded=True,
    )
    do_train: bool = groups.UPDATES.flag(
        PerModel(False, {"albert": True, "electra": True}), "Train the model."
    )
    do_eval: bool = groups.EVALUATION.flag(
        PerModel(False), "Evaluate the model, after training if --do_train is on."
    )
    objective: str = groups.UPDATES.flag(
        MASKED_WORDS.name,
        "What the model predicts. "
        + " ".join(f"{o.name}: {o.predicts}." for o in OBJECTIVES.values()),
        choices=OBJECTIVES.keys(),
        recorded=True,
    )
    generator_dir: str = groups.MODEL.input_folder(
        "The folder of the generator to start from, saved by transformers (ElectraForMaskedLM). "
        "Also requires the discriminator's weights (--model_dir or --init_checkpoint).",
        needs=(f"objective={REPLACED_TOKENS.name}",),
    )
    generator_size: float = groups.UPDATES.optional(
        "The generator's hidden size as a fraction of the discriminator's. Default: from "
        "--generator_dir, else from the configuration.",
        above=0,
        most=1,
        recorded=True,
        needs=(f"objective={REPLACED_TOKENS.name}",),
    )
    token_dropping: float = groups.UPDATES.flag(
        0.0,
        "The share of tokens that skip the middle layers to save training time, for example 0.5 "
        "(arXiv:2203.13240). Not for --objective=rtd.",
        least=0,
        below=1,
        recorded=True,
    )
    train_batch_size: int = groups.UPDATES.flag(
        PerModel(32, {"albert": 4096, "electra": 128}),
        "The number of examples per update, across all devices.",
        least=1,
        recorded=True,
    )
    eval_input_file: str = groups.EVALUATION.optional(
        "The record files to evaluate on, preferably held out. Default: the training files.",
        is_input=True,
        is_path=True,
    )
    eval_batch_size: int = groups.EVALUATION.flag(
        PerModel(8, {"albert": 64, "electra": 128}),
        "The number of examples per evaluation batch, across all devices.",
        least=1,
    )
    optimizer: str = groups.OPTIMIZER.flag(
        PerModel("adamw", {"albert": "lamb"}),
        "The optimizer, implemented as in Google's programs.",
        choices=OPTIMIZER_NAMES,
        recorded=True,
    )
    learning_rate: float = groups.OPTIMIZER.flag(
        PerModel(5e-5, {"albert": 0.00176, "electra": 5e-4}),
        "The peak learning rate, reached at the end of the warm-up.",
        above=0,
        recorded=True,
    )
    poly_power: float = groups.OPTIMIZER.flag(
        1.0, "The exponent of the polynomial learning-rate decay. 1: linear.", above=0
    )
    num_train_steps: int = groups.UPDATES.flag(
        PerModel(100000, {"albert": 125000, "electra": 1000000}),
        "The number of training updates.",
        least=1,
        recorded=True,
    )
    num_warmup_steps: int = groups.UPDATES.flag(
        PerModel(10000, {"albert": 3125}), "The number of warm-up updates.", least=0, recorded=True
    )
    max_train_hours: float = groups.UPDATES.flag(
        0.0,
        "Train for this many hours in total, counted across restarts. The learning rate then "
        "decays with the elapsed time, and --num_train_steps and --num_warmup_steps have no "
        "effect. 0: train for --num_train_steps.",
        least=0,
        recorded=True,
    )
    start_warmup_step: int = groups.UPDATES.flag(
        0, "The update at which warm-up begins. Until then, the learning rate is 0.", least=0
    )
    save_checkpoints_steps: int = groups.RUNS.flag(
        PerModel(1000, {"albert": 5000}), "The number of updates between checkpoints.", least=1
    )
    max_eval_steps: int = groups.EVALUATION.flag(
        100, "The maximum number of batches to evaluate on.", least=1
    )
    eval_every_steps: int = groups.EVALUATION.flag(
        0,
        "The number of updates between evaluations during training. 0: no evaluation before the "
        "end of training.",
        least=0,
        needs=("eval_input_file",),
    )
    bucket_boundaries: str = groups.BATCHES.optional(
        "Comma-separated lengths in tokens, each below --max_seq_length, such as 128,256. "
        "Each batch holds examples of similar length and is padded to the next of these "
        "lengths or to --max_seq_length. Not for packed examples. Default: every batch is "
        "padded to --max_seq_length."
    )
    mask_processes: int = groups.PROCESSES.optional(
        "The number of processes that mask tokens, for record files made with "
        "--masking=dynamic. Does not affect the masks. 0: the training process masks them. "
        "Default: one per GPU, but fewer than there are CPU cores; 0 without a GPU.",
        least=0,
    )
    export_dir: str = groups.EXPORT.output_folder(
        "The folder to write the final model to: configuration, tokenizer and weights, without "
        "optimizer state."
    )
    masked_lm_budget: float = groups.COMPATIBILITY.flag(
        0.0, "Must be 0: Google's program fails with other values.", least=0, refused=True
    )
    init_from_group0: bool = groups.COMPATIBILITY.flag(
        False, "Must be off: Google's program failed with this flag.", refused=True
    )

    @property
    def last_step(self) -> int:
        """The last update: --num_train_steps, or `INT32_MAX` with --max_train_hours."""
        return INT32_MAX if self.max_train_hours else self.num_train_steps


def check_flags(given: PretrainFlags, values: PretrainFlags) -> None:
    """Raises an `InputError` for invalid values, without reading files; notes unused values.

    `values` are the `given` flags with all defaults filled in.
    """
    start, count = values.start_warmup_step, values.num_warmup_steps
    if values.max_train_hours:
        unused = [n for n in ("num_train_steps", "num_warmup_steps") if is_given(given, n)]
        unused += ["start_warmup_step"] if start else []
        if unused:
            print(f"note: without effect beside --max_train_hours: --{', --'.join(unused)}")
    if not (values.do_train or values.do_eval):
        raise InputError("--do_train or --do_eval must be on. Received: both off")
    read_profile_steps(values)
    if values.do_train and not values.max_train_hours:
        if start and not count:
            warnings.warn(
                f"--start_warmup_step={start} has no effect with --num_warmup_steps=0", stacklevel=2
            )
        elif start + count > values.num_train_steps:
            begins = f"--start_warmup_step={start} + " if start else ""
            warnings.warn(
                f"{begins}--num_warmup_steps={count} is more than "
                f"--num_train_steps={values.num_train_steps}: the learning rate never reaches "
                "--learning_rate",
                stacklevel=2,
            )


def read_bucket_boundaries(text: str | None, record_format: RecordFormat) -> tuple[int, ...]:
    """Returns the lengths that batches may have, ascending; () without --bucket_boundaries."""
    if not text:
        return ()
    longest = record_format.max_seq_length
    lengths = read_numbers(
        "bucket_boundaries",
        text,
        f"ascending lengths below --max_seq_length, {longest}",
        lambda lengths: ascends(lengths) and lengths[-1] < longest,
    )
    if record_format.packed_sequences:
        raise InputError(
            "--bucket_boundaries is for records that are not packed: packed rows are full. "
            f"Received: --bucket_boundaries={text} and packed records"
        )
    return (*lengths, longest)
