"""The program run_pretraining: flags in, a trained BERT or ALBERT out."""

import dataclasses
import functools
import json
import math
import os
import re
import tempfile
import warnings

from albert_tf.config import AlbertConfig
from bert_tf.checkpoint_files import EXPORTED_NAME, exists, latest_checkpoint
from bert_tf.cluster import read_cluster
from bert_tf.config import BertConfig
from bert_tf.memory import memory_line
from bert_tf.quiet import import_tensorflow
from run_scripts.cli import Columns, expand_globs, flag, resolve_columns, run_program
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
    keep_checkpoint_every_steps: int = flag(
        0, "Checkpoints at multiples of it are made and stay, beside the newest; 0 for none."
    )
    eval_input_file: str = flag(
        None, "Held-out TFRecord files to evaluate on; without them the training files are read."
    )
    eval_every_steps: int = flag(
        0, "Updates between two evaluations on --eval_input_file; 0: one at the end."
    )
    max_eval_steps: int = flag(100, "Evaluate at most so many batches.")
    max_bad_steps: int = flag(
        10,
        "Steps in a row whose loss or gradient is no number, which change no weight, before the "
        "run stops.",
    )
    profile_steps: str = flag(None, "Updates to trace for TensorBoard's profiler: FROM,TO.")
    random_seed: int = flag(12345, "Decides new weights, the order of examples, dropout.")
    distribution_strategy: str = flag(
        "auto",
        "Devices: one; all GPUs of this machine; those of all workers in TF_CONFIG.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
    )
    num_gpus: int = flag(None, "How many GPUs (of each worker); all without it.")
    gradient_accumulation_steps: int = flag(
        1, "Parts that a device computes its share of a batch in, to need less memory."
    )
    steps_per_loop: int = flag(
        None, "Updates without coming back to Python; without it 10 on GPUs, 1 on a CPU."
    )
    precision: str = flag(
        "float32",
        "What products are computed in; weights, moments, norms and losses are float32 always. "
        "auto: bfloat16 where the hardware has it. float16 has not been tried on a GPU.",
        choices=("float32", "bfloat16", "float16", "auto"),
    )
    recompute: str = flag(
        "none",
        "block: keep the input of each block alone and compute the rest again; far less memory "
        "for a second forward pass.",
        choices=("none", "block"),
    )
    xla: str = flag(
        "auto",
        "Whether XLA compiles the training step; auto: yes, unless it cannot, or bfloat16 on a "
        "CPU is faster without.",
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
    eval_files = files
    if values.eval_input_file:
        eval_files = expand_globs(values.eval_input_file, "eval_input_file")
    cluster = read_cluster(os.environ)
    tokenizer = check_vocabulary(values, config)
    check_checkpoints(values)
    make_writable(values.output_dir, "output_dir")
    if values.export_dir:
        make_writable(values.export_dir, "export_dir")

    if cluster:
        # TensorFlow reports a lost worker in many lines of its own.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import_tensorflow()
    run(values, column, config, files, eval_files, tokenizer, cluster)


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
                 "max_predictions_per_seq", "gradient_accumulation_steps", "steps_per_loop",
                 "num_gpus"):  # fmt: skip
        if getattr(values, name) is not None and getattr(values, name) < 1:
            raise InputError(f"--{name} must be at least 1. Received: {getattr(values, name)}")
    for name in ("num_warmup_steps", "start_warmup_step", "keep_checkpoint_max", "random_seed",
                 "keep_checkpoint_every_steps", "eval_every_steps", "max_bad_steps"):  # fmt: skip
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
    if values.eval_every_steps and not (values.eval_input_file and values.do_train):
        raise InputError(
            "--eval_every_steps needs --eval_input_file and --do_train. Received: "
            f"--eval_every_steps={values.eval_every_steps} without"
        )
    read_profile_steps(values)
    unused = [name for name in TPU_FLAGS if getattr(values, name) is not None]
    if unused:
        print(f"note: --{', --'.join(unused)}: for TPUs, without effect here")


def read_profile_steps(values):
    """The first and the last update to trace; (0, 0) for none."""
    if values.profile_steps is None:
        return 0, 0
    match = re.fullmatch(r"(\d+),(\d+)", values.profile_steps)
    first, last = map(int, match.groups()) if match else (0, 0)
    if not 1 <= first <= last:
        raise InputError(
            "--profile_steps must be FROM,TO: two steps, the first of them at least 1. Received: "
            f"{values.profile_steps}"
        )
    return first, last


def read_config(values, column):
    """The model's configuration."""
    if column == "bert":
        return BertConfig.from_json_file(values.bert_config_file)
    return AlbertConfig.from_json_file(values.albert_config_file)


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


def run(values, column, config, files, eval_files, tokenizer, cluster):
    """The part that needs TensorFlow."""
    from bert_tf.compilation import choose_compilation, compile_between_products
    from bert_tf.distribution import barrier, explain_lost_worker, make_strategy
    from bert_tf.precision import choose_precision

    precision = choose_precision(values.precision)
    compiled = choose_compilation(values.xla, precision)
    if compiled.between_products:
        compile_between_products()
    if cluster and len(cluster.workers) > 1:
        print(f"waiting for all of {len(cluster.workers)} workers", flush=True)
    strategy = make_strategy(values.distribution_strategy, values.num_gpus)
    with explain_lost_worker(strategy):
        train_and_evaluate(
            values, column, config, files, eval_files, tokenizer, strategy, precision, compiled
        )
        # A worker that ended sooner would look like one that is lost.
        barrier(strategy)


def train_and_evaluate(
    values, column, config, files, eval_files, tokenizer, strategy, precision, compiled
):
    """The program on its devices; of several workers the chief alone writes and speaks."""
    import keras

    from bert_tf.checkpoint import save_google_checkpoint
    from bert_tf.distribution import check_agreement, is_chief
    from bert_tf.evaluation import Evaluator
    from bert_tf.input_pipeline import check_records
    from bert_tf.training import TrainingData, train
    from bert_tf.training_state import restore

    chief = is_chief(strategy)
    say = functools.partial(print, flush=True) if chief else lambda *_: None
    # First of all: what one worker refuses alone, the others would learn as its loss.
    flags = {f"--{name}": value for name, value in dataclasses.asdict(values).items()}
    sizes = {f"{k} of the configuration": v for k, v in dataclasses.asdict(config).items()}
    check_agreement(strategy, {**flags, **sizes})
    check_batches(values, strategy.num_replicas_in_sync)
    shape = (values.max_seq_length, values.max_predictions_per_seq)
    data = held_out = TrainingData(files, *check_records(files, *shape, config))
    check_length(values, config, data)
    if values.eval_input_file:
        held_out = TrainingData(eval_files, *check_records(eval_files, *shape, config))
        check_length(values, config, held_out)
    check_agreement(strategy, {"records": data.examples, "precision": precision})
    keras.utils.set_random_seed(values.random_seed)
    with strategy.scope():
        state = build(values, column, config, precision)
    allow_missing = tuple(filter(None, values.allow_missing.split(",")))
    line = restore(state, strategy, values.output_dir, values.init_checkpoint, allow_missing)
    # A worker that does not see the others' checkpoints would start from new weights.
    check_agreement(strategy, {"the step to go on from": state.step})
    say(f"model: {config}")
    say(line)
    if chief:
        describe(values.output_dir, column, config, tokenizer)

    evaluator = None
    if values.do_eval or values.eval_input_file:
        evaluator = Evaluator(
            state.model,
            strategy,
            held_out.files,
            held_out.record_format,
            values.eval_batch_size,
            values.max_eval_steps,
            SENTENCE_NAMES[column],
            xla=compiled.whole,
        )
    if values.do_train and state.step >= values.num_train_steps:
        say(
            f"already at step {state.step} of {values.num_train_steps}: nothing to train "
            "(a larger --num_train_steps goes on from here)"
        )
    elif values.do_train:
        say(training_line(values, strategy, precision, compiled, state.step, data.examples))
        part = values.train_batch_size // strategy.num_replicas_in_sync
        part //= values.gradient_accumulation_steps
        say(memory_line(config, part, *shape, precision, values.recompute))
        stopped = train(
            state,
            strategy,
            data,
            training_config(values, column),
            evaluator if values.eval_input_file else None,
            tokenizer,
            {"configuration": as_table(config), "command": as_command(values)},
        )
        if stopped:
            say(
                f"stopped by {stopped} after step {state.step} of {values.num_train_steps}, saved "
                f"in {values.output_dir}: the same command goes on from there"
            )
            return
    if values.export_dir and chief:
        save_google_checkpoint(state.model, os.path.join(values.export_dir, EXPORTED_NAME))
        describe(values.export_dir, column, config, tokenizer)
        say(f"exported to {values.export_dir}")
    if values.do_eval:
        results = {**evaluator.run(), "global_step": state.step}
        if chief:
            show_results(values, results, held_out)


def training_line(values, strategy, precision, compiled, step, examples):
    """What is about to happen: devices, precision, batch, steps, passes over the records."""
    from bert_tf.distribution import describe_devices

    parts = values.gradient_accumulation_steps
    return (
        f"training on {describe_devices(strategy)} in {precision}, XLA {compiled}, "
        f"{values.train_batch_size} examples an update "
        f"({values.train_batch_size // strategy.num_replicas_in_sync} a device"
        f"{f', in {parts} parts' if parts > 1 else ''}), "
        f"steps {step + 1} to {values.num_train_steps}, "
        f"{values.num_train_steps * values.train_batch_size / examples:.1f} passes over "
        f"{examples:,} examples"
    )


def show_results(values, results, held_out):
    """Writes and prints the evaluation, beside what guessing would give."""
    from bert_tf.evaluation import write_results
    from bert_tf.input_pipeline import most_frequent_share
    from bert_tf.reporting import write_evaluation

    if not (values.do_train and values.eval_input_file):  # else training has drawn this point
        write_evaluation(values.output_dir, results, results["global_step"])
    path = write_results(values.output_dir, results)
    print("***** Eval results *****")
    for name in sorted(results):
        print(f"  {name} = {results[name]}")
    share = most_frequent_share(
        held_out.files, held_out.record_format, values.eval_batch_size * values.max_eval_steps
    )
    print(f"  (always guessing the most frequent masked word: accuracy {share:.4f})")
    print(f"written to {path}")


def training_config(values, column):
    """What `train` needs of the flags."""
    import tensorflow as tf

    from bert_tf.training import TrainingConfig

    # On a CPU a step takes so long that a signal should not have to wait for ten.
    loop = 10 if tf.config.list_physical_devices("GPU") else 1
    names = {field.name for field in dataclasses.fields(TrainingConfig)}
    given = {name: value for name, value in dataclasses.asdict(values).items() if name in names}
    return TrainingConfig(
        **{
            **given,
            "steps_per_loop": values.steps_per_loop or loop,
            "profile_steps": read_profile_steps(values),
        },
        seed=values.random_seed,
        sentence_name=SENTENCE_NAMES[column],
    )


def build(values, column, config, precision):
    """The model with its optimizer, at step 0; called in the strategy's scope."""
    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.loss_scale import LossScale
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.precision import POLICIES
    from bert_tf.training_state import TrainingState

    encoder = BertModel if column == "bert" else AlbertModel
    model = PretrainingModel(encoder(config, dtype=POLICIES[precision]))
    schedule = WarmupPolynomialDecay(
        values.learning_rate,
        values.num_train_steps,
        values.num_warmup_steps,
        power=values.poly_power,
        start_warmup_step=values.start_warmup_step,
    )
    optimizer = OPTIMIZERS[values.optimizer](schedule)
    optimizer.build(model.trainable_variables)
    return TrainingState(model, optimizer, LossScale() if precision == "float16" else None)


def check_batches(values, replicas):
    """Every device must get the same number of examples, and every part of a device's."""
    parts = values.gradient_accumulation_steps
    if values.do_train and values.train_batch_size % (replicas * parts):
        raise InputError(
            "--train_batch_size must be a multiple of the number of devices times "
            "--gradient_accumulation_steps. Received: "
            f"--train_batch_size={values.train_batch_size}, {replicas} devices, "
            f"--gradient_accumulation_steps={parts}"
        )
    if (values.do_eval or values.eval_input_file) and values.eval_batch_size % replicas:
        raise InputError(
            "--eval_batch_size must be a multiple of the number of devices. Received: "
            f"--eval_batch_size={values.eval_batch_size}, {replicas} devices"
        )


def check_length(values, config, data):
    """The model's positions must cover the sequences; those of a packed row count from 0 again."""
    packed = data.record_format.packed_sequences
    if not packed and values.max_seq_length > config.max_position_embeddings:
        raise InputError(
            "--max_seq_length must be at most max_position_embeddings of the configuration, "
            f"unless rows are packed. Received: {values.max_seq_length} and "
            f"{config.max_position_embeddings}"
        )


def as_table(config):
    """The model's configuration as Markdown."""
    from bert_tf.markdown import as_markdown_table

    return as_markdown_table(dataclasses.asdict(config))


def as_command(values):
    """The flags that were given or have a default, as Markdown."""
    lines = [f"    --{k}={v}" for k, v in dataclasses.asdict(values).items() if v is not None]
    return "\n".join(["    run_pretraining", *lines])


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
