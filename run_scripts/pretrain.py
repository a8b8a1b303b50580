"""The program run_pretraining: flags in, a trained BERT or ALBERT out."""

import dataclasses
import json
import math
import os
import tempfile
import warnings

from albert_tf.config import AlbertConfig
from bert_tf.checkpoint_files import EXPORTED_NAME, exists, latest_checkpoint
from bert_tf.config import BertConfig
from run_scripts.cli import Columns, expand_globs, flag, resolve_columns, run_program
from run_scripts.quiet import import_tensorflow
from tokenization import load_tokenizer, save_tokenizer
from tokenization.errors import InputError
from tokenization.vocabulary import load_vocabulary

# What each column calls its sentence objective: the names in eval_results.txt.
SENTENCE_NAMES = {"bert": "next_sentence", "albert": "sentence_order"}
CONFIG_NAMES = {"bert": "bert_config.json", "albert": "albert_config.json"}

# Flags of the reference programs that mean nothing off a TPU.
TPU_FLAGS = (
    "tpu_name", "tpu_zone", "gcp_project", "master", "num_tpu_cores", "iterations_per_loop",
)  # fmt: skip

# What the seeds of TensorFlow and of the training step have room for.
MAX_SEED = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class PretrainFlags:
    """Pre-trains BERT or ALBERT on the records of create_pretraining_data.py.

    Give --bert_config_file or --albert_config_file: it chooses the model, and with it the
    defaults of google-research/bert or of google-research/albert. A run that was stopped goes
    on from the newest checkpoint in --output_dir when it is started again."""

    bert_config_file: str = flag(None, "BERT's sizes, a bert_config.json.")
    albert_config_file: str = flag(None, "ALBERT's sizes, an albert_config.json.")
    input_file: str = flag(
        None, "TFRecord files: paths or globs, separated by commas.", required=True
    )
    output_dir: str = flag(
        None, "Where checkpoints, TensorBoard curves and results are written.", required=True
    )
    init_checkpoint: str = flag(
        None, "Weights to start from: a checkpoint of Google's or of this program."
    )
    allow_missing: str = flag(
        "",
        "What --init_checkpoint may lack: beginnings of Google's variable names, separated by "
        "commas; cls/ for the pre-training heads.",
    )
    vocab_file: str = flag(
        None, "The records' vocabulary: checked against the configuration's vocab_size."
    )
    tokenizer_dir: str = flag(
        None,
        "The records' tokenizer (a folder with tokenizer_config.json): checked likewise, and "
        "copied into --output_dir.",
    )
    max_seq_length: int = flag(Columns(128, 512), "Length of the records' sequences.")
    max_predictions_per_seq: int = flag(Columns(20, 20), "Places for masked words in a record.")
    do_train: bool = flag(Columns(False, True), "Whether to train.")
    do_eval: bool = flag(Columns(False, False), "Whether to evaluate, after training if both.")
    train_batch_size: int = flag(Columns(32, 4096), "Examples of an update, over all devices.")
    eval_batch_size: int = flag(Columns(8, 64), "Examples of an evaluation step.")
    optimizer: str = flag(
        Columns("adamw", "lamb"), "Google's AdamW or LAMB.", choices=("adamw", "lamb")
    )
    learning_rate: float = flag(Columns(5e-5, 0.00176), "The rate that the warm-up aims at.")
    poly_power: float = flag(1.0, "The power of the rate's fall.")
    num_train_steps: int = flag(Columns(100000, 125000), "Updates in all.")
    num_warmup_steps: int = flag(Columns(10000, 3125), "Updates of linear warm-up.")
    start_warmup_step: int = flag(0, "The update at which the warm-up begins.")
    save_checkpoints_steps: int = flag(Columns(1000, 5000), "Updates between two checkpoints.")
    keep_checkpoint_max: int = flag(5, "How many of the newest checkpoints stay; 0 keeps all.")
    save_summary_steps: int = flag(100, "Updates between two points on TensorBoard.")
    max_eval_steps: int = flag(100, "Evaluate at most so many batches.")
    random_seed: int = flag(12345, "Decides new weights, the order of examples, dropout.")
    xla: str = flag(
        "auto",
        "Whether XLA compiles the training step; auto: yes, unless it cannot.",
        choices=("auto", "on", "off"),
    )
    export_dir: str = flag(
        None, "After training, also write weights, configuration and tokenizer here, no moments."
    )
    iterations_per_loop: int = flag(None, "For TPUs; means nothing here.")
    use_tpu: bool = flag(False, "Accepted while off: this program trains on GPUs and CPUs.")
    tpu_name: str = flag(None, "For TPUs; means nothing here.")
    tpu_zone: str = flag(None, "For TPUs; means nothing here.")
    gcp_project: str = flag(None, "For TPUs; means nothing here.")
    master: str = flag(None, "For TPUs; means nothing here.")
    num_tpu_cores: int = flag(None, "For TPUs; means nothing here.")
    masked_lm_budget: float = flag(0.0, "Accepted at 0: it did nothing in Google's program.")
    init_from_group0: bool = flag(False, "Accepted while off: it failed in Google's program.")


def main(argv=None):
    """The console script and the launcher; returns the exit status."""
    return run_program(pretrain, PretrainFlags, argv)


def pretrain(values):
    """Checks everything that can be checked, then trains, then evaluates."""
    column = choose_column(values)
    values = resolve_columns(values, column)
    check_flags(values)
    config = read_config(values, column)
    files = expand_globs(values.input_file, "input_file")
    tokenizer = check_vocabulary(values, config)
    check_checkpoints(values)
    make_writable(values.output_dir, "output_dir")
    if values.export_dir:
        make_writable(values.export_dir, "export_dir")

    import_tensorflow()
    run(values, column, config, files, tokenizer)


def choose_column(values):
    """Which model the flags mean: "bert" or "albert"."""
    given = [name for name in CONFIG_NAMES if getattr(values, f"{name}_config_file")]
    if len(given) != 1:
        raise InputError(
            "one of --bert_config_file and --albert_config_file must be given. Received: "
            f"{'both' if given else 'neither'}"
        )
    return given[0]


def check_flags(values):
    """Refuses values that cannot work, whatever the files hold."""
    if not (values.do_train or values.do_eval):
        raise InputError("--do_train or --do_eval must be on. Received: both off")
    if values.use_tpu:
        raise InputError("--use_tpu must be off: GPUs and CPUs are what this trains on")
    if values.masked_lm_budget:
        raise InputError(f"--masked_lm_budget must be 0. Received: {values.masked_lm_budget}")
    if values.init_from_group0:
        raise InputError("--init_from_group0 must be off: Google's program fails on it too")
    for name in ("train_batch_size", "eval_batch_size", "num_train_steps", "save_checkpoints_steps",
                 "save_summary_steps", "max_eval_steps", "max_seq_length",
                 "max_predictions_per_seq"):  # fmt: skip
        if getattr(values, name) < 1:
            raise InputError(f"--{name} must be at least 1. Received: {getattr(values, name)}")
    for name in ("num_warmup_steps", "start_warmup_step", "keep_checkpoint_max", "random_seed"):
        if getattr(values, name) < 0:
            raise InputError(f"--{name} must not be negative. Received: {getattr(values, name)}")
    if values.random_seed > MAX_SEED:
        raise InputError(
            f"--random_seed must be at most {MAX_SEED}. Received: {values.random_seed}"
        )
    if values.do_train and values.num_warmup_steps > values.num_train_steps:
        warnings.warn(
            f"--num_warmup_steps={values.num_warmup_steps} is more than "
            f"--num_train_steps={values.num_train_steps}: the rate never comes near "
            "--learning_rate",
            stacklevel=2,
        )
    for name in ("learning_rate", "poly_power"):
        if not 0 < getattr(values, name) < math.inf:  # refuses nan too
            raise InputError(
                f"--{name} must be a positive number. Received: {getattr(values, name)}"
            )
    unused = [name for name in TPU_FLAGS if getattr(values, name) is not None]
    if unused:
        print(f"note: --{', --'.join(unused)}: for TPUs, without effect here")


def read_config(values, column):
    """The model's configuration; its positions must cover the sequences."""
    if column == "bert":
        config, path = BertConfig.from_json_file(values.bert_config_file), values.bert_config_file
    else:
        config = AlbertConfig.from_json_file(values.albert_config_file)
        path = values.albert_config_file
    if values.max_seq_length > config.max_position_embeddings:
        raise InputError(
            f"--max_seq_length must be at most max_position_embeddings of {path}. Received: "
            f"{values.max_seq_length} and {config.max_position_embeddings}"
        )
    return config


def check_vocabulary(values, config):
    """The tokenizer of --tokenizer_dir, or None; neither it nor --vocab_file may be too large."""
    if values.vocab_file and values.tokenizer_dir:
        raise InputError("--vocab_file and --tokenizer_dir: only one may be given. Received: both")
    tokenizer = load_tokenizer(values.tokenizer_dir) if values.tokenizer_dir else None
    if tokenizer is not None:
        source, size = values.tokenizer_dir, tokenizer.vocab_size
    elif values.vocab_file:
        vocabulary, _ = load_vocabulary(values.vocab_file)
        source, size = values.vocab_file, max(vocabulary.values()) + 1
    else:
        return None
    if size > config.vocab_size:
        raise InputError(
            "vocab_size of the configuration must be at least the vocabulary's size. Received: "
            f"vocab_size={config.vocab_size}, {source} has {size} entries"
        )
    return tokenizer


def check_checkpoints(values):
    """Refuses a checkpoint that is not there, or an evaluation without one."""
    prefix, newest = values.init_checkpoint, latest_checkpoint(values.output_dir)
    if prefix and not newest and not exists(prefix):  # a run that goes on does not read it
        found = latest_checkpoint(prefix) if os.path.isdir(prefix) else None
        raise InputError(
            f"--init_checkpoint must name a checkpoint, that is a file {prefix}.index. "
            f"Received: no such file{f'; did you mean {found} ?' if found else ''}"
        )
    if not (values.do_train or prefix or newest):
        raise InputError(
            "to evaluate there must be a checkpoint in --output_dir, or --init_checkpoint. "
            f"Received: none in {values.output_dir}"
        )


def make_writable(directory, flag_name):
    """Makes the directory, and sees that a file can be written there."""
    try:
        os.makedirs(directory, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise InputError(
            f"--{flag_name} must be a directory that can be written. Received: {directory}: "
            f"{error.strerror}"
        ) from None


def run(values, column, config, files, tokenizer):
    """The part that needs TensorFlow."""
    import keras

    from bert_tf.checkpoint import save_google_checkpoint
    from bert_tf.evaluation import evaluate, write_results
    from bert_tf.input_pipeline import check_records, most_frequent_share
    from bert_tf.reporting import write_evaluation
    from bert_tf.training import (
        TrainingConfig,
        choose_strategy,
        describe_devices,
        restore,
        train,
    )

    record_format, examples = check_records(
        files, values.max_seq_length, values.max_predictions_per_seq, config
    )
    strategy = choose_strategy()
    check_batches(values, strategy.num_replicas_in_sync)
    keras.utils.set_random_seed(values.random_seed)
    with strategy.scope():
        model, optimizer = build(values, column, config)
    allow_missing = tuple(filter(None, values.allow_missing.split(",")))
    step, line = restore(model, optimizer, values.output_dir, values.init_checkpoint, allow_missing)
    print(f"model: {config}")
    print(line, flush=True)
    describe(values.output_dir, column, config, tokenizer)

    settings = TrainingConfig(
        output_dir=values.output_dir,
        train_batch_size=values.train_batch_size,
        num_train_steps=values.num_train_steps,
        save_checkpoints_steps=values.save_checkpoints_steps,
        keep_checkpoint_max=values.keep_checkpoint_max,
        save_summary_steps=values.save_summary_steps,
        seed=values.random_seed,
        xla=values.xla,
        sentence_name=SENTENCE_NAMES[column],
    )
    if values.do_train and step >= values.num_train_steps:
        print(
            f"already at step {step} of {values.num_train_steps}: nothing to train "
            "(a larger --num_train_steps goes on from here)"
        )
    elif values.do_train:
        replicas = strategy.num_replicas_in_sync
        weights = sum(math.prod(v.shape) for v in model.trainable_variables)
        print(
            f"training {weights:,} weights on {describe_devices(replicas)}, "
            f"{values.train_batch_size} examples an update "
            f"({values.train_batch_size // replicas} a device), "
            f"steps {step + 1} to {values.num_train_steps}, "
            f"{values.num_train_steps * values.train_batch_size / examples:.1f} passes over "
            f"{examples:,} examples",
            flush=True,
        )
        step = train(model, optimizer, strategy, files, record_format, examples, settings, step)
    if values.export_dir:
        save_google_checkpoint(model, os.path.join(values.export_dir, EXPORTED_NAME))
        describe(values.export_dir, column, config, tokenizer)
        print(f"exported to {values.export_dir}")
    if values.do_eval:
        results = evaluate(
            model,
            strategy,
            files,
            record_format,
            values.eval_batch_size,
            values.max_eval_steps,
            SENTENCE_NAMES[column],
        )
        results["global_step"] = step
        write_evaluation(values.output_dir, results, step)
        path = write_results(values.output_dir, results)
        print("***** Eval results *****")
        for name in sorted(results):
            print(f"  {name} = {results[name]}")
        share = most_frequent_share(
            files, record_format, values.eval_batch_size * values.max_eval_steps
        )
        print(f"  (always guessing the most frequent masked word: accuracy {share:.4f})")
        print(f"written to {path}")


def build(values, column, config):
    """The model with its optimizer; called in the strategy's scope."""
    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.optimization import OPTIMIZERS

    encoder = BertModel(config) if column == "bert" else AlbertModel(config)
    model = PretrainingModel(encoder)
    schedule = WarmupPolynomialDecay(
        values.learning_rate,
        values.num_train_steps,
        values.num_warmup_steps,
        power=values.poly_power,
        start_warmup_step=values.start_warmup_step,
    )
    optimizer = OPTIMIZERS[values.optimizer](schedule)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def check_batches(values, replicas):
    """Every device must get the same number of examples."""
    for name, used in (("train_batch_size", values.do_train), ("eval_batch_size", values.do_eval)):
        if used and getattr(values, name) % replicas:
            raise InputError(
                f"--{name} must be a multiple of the number of devices. Received: "
                f"--{name}={getattr(values, name)}, {replicas} devices"
            )


def describe(directory, column, config, tokenizer):
    """Puts configuration and tokenizer beside the checkpoints: a directory that explains itself."""
    path = os.path.join(directory, CONFIG_NAMES[column])
    temporary = f"{path}.tmp-{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(config), file, indent=2)
        file.write("\n")
    os.replace(temporary, path)
    if tokenizer is not None:
        save_tokenizer(tokenizer, directory)
