"""The program run_pretraining: flags in, a trained BERT or ALBERT out."""

import dataclasses
import functools
import os

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_tf.checkpoint_files import EXPORTED_NAME, latest_checkpoint
from bert_tf.input.data_order import sizes_of
from bert_tf.memory_estimate import memory_line
from bert_tf.training.cluster import read_cluster
from bert_tf.training.output_folder import training_folders
from run_scripts.flags.parser import resolve_model_defaults, run_program
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.pretrain import (
    PretrainFlags,
    check_checkpoints,
    check_described_tokenizer,
    check_flags,
    check_vocabulary,
    evaluation_shape,
    read_bucket_boundaries,
    read_own_tokenizer,
    take_described_lengths,
)
from run_scripts.flags.training import (
    choose_model_type,
    library_seed,
    read_config,
    read_profile_steps,
)
from run_scripts.model_folder import add_trained_positions, describe, fill_in_model


def main(argv=None):
    """The console script and the launcher; returns the exit status."""
    return run_program(pretrain, PretrainFlags, argv)


def pretrain(values):
    """Checks everything that can be checked, then trains, then evaluates."""
    values = fill_in_model(values)
    model_type = choose_model_type(values)
    given, values = values, resolve_model_defaults(values, model_type)
    check_flags(values)
    config = read_config(values, model_type)
    files = expand_globs(values.input_file, "input_file")
    values = take_described_lengths(values, given, files)
    eval_files = files
    if values.eval_input_file:
        eval_files = expand_globs(values.eval_input_file, "eval_input_file")
    cluster = read_cluster(os.environ)
    tokenizer = check_vocabulary(values, config)
    check_described_tokenizer(values, tokenizer, [*files, *eval_files])
    if tokenizer is None:
        tokenizer = read_own_tokenizer(config, files)
    if tokenizer is None and values.do_train and (cluster is None or cluster.index == 0):
        print(
            "note: no tokenizer lies beside the records, so none is saved with the model "
            "(--tokenizer_dir names one)"
        )
    check_checkpoints(values)
    for name in ("output_dir", "export_dir"):
        if folder := getattr(values, name):
            make_writable(folder, f"--{name} must be a directory that can be written")

    if cluster:
        # TensorFlow reports a lost worker in many lines of its own.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with training_folders([values.output_dir] if values.do_train else [], cluster) as held:
        import_tensorflow()
        run(values, model_type, config, files, eval_files, tokenizer, cluster, *held)


def run(values, model_type, config, files, eval_files, tokenizer, cluster, folders, refusal):
    """The part that needs TensorFlow.

    Args:
        values: `PretrainFlags`, checked.
        model_type: "bert" or "albert".
        config: the model's configuration.
        files, eval_files: record files.
        tokenizer: that of the records, or None.
        cluster: what `read_cluster` returned.
        folders, refusal: what `training_folders` yielded.
    """
    from bert_tf.training.distribution import (
        barrier,
        explain_lost_worker,
        make_strategy,
        raise_together,
    )
    from bert_tf.training.mixed_precision import choose_precision
    from bert_tf.training.out_of_memory import MEMORY_REMEDIES, explain_exhaustion
    from bert_tf.training.xla import choose_compilation, compile_between_products

    precision = choose_precision(values.precision)
    compiled = choose_compilation(values.xla, precision)
    if compiled.between_products:
        compile_between_products()
    if cluster and len(cluster.workers) > 1:
        print(f"waiting for all of {len(cluster.workers)} workers", flush=True)
    strategy = make_strategy(values.distribution_strategy, values.num_gpus)
    with explain_lost_worker(strategy), explain_exhaustion(MEMORY_REMEDIES, {}):
        raise_together(strategy, refusal)
        train_and_evaluate(
            values, model_type, config, files, eval_files, tokenizer, strategy, precision, compiled,
            folders.get(values.output_dir),
        )  # fmt: skip
        # A worker that ended sooner would look like one that is lost.
        barrier(strategy)


def train_and_evaluate(
    values, model_type, config, files, eval_files, tokenizer, strategy, precision, compiled, folder
):
    """The program on its devices; of several workers the chief alone writes and speaks."""
    import keras

    from bert_tf.checkpoint import save_google_checkpoint
    from bert_tf.input.record_checks import check_records, longest_sequence
    from bert_tf.input.training_records import TrainingRecords
    from bert_tf.training.distribution import check_agreement, is_chief
    from bert_tf.training.evaluation import RecordsEvaluator
    from bert_tf.training.loop import compiling_line, train
    from bert_tf.training.state import restore

    chief = is_chief(strategy)
    say = functools.partial(print, flush=True) if chief else lambda *_: None
    # First of all: what one worker refuses alone, the others would learn as its loss.
    flags = {f"--{name}": value for name, value in dataclasses.asdict(values).items()}
    sizes = {f"{k} of the configuration": v for k, v in dataclasses.asdict(config).items()}
    check_agreement(strategy, {**flags, **sizes})
    check_batches(values, strategy.num_replicas_in_sync)
    shape = (values.max_seq_length, values.max_predictions_per_seq)
    data = held_out = TrainingRecords(files, *check_records(files, *shape, config), config)
    check_length(config, data)
    read_bucket_boundaries(values, data.record_format)
    if values.eval_input_file:
        eval_shape = evaluation_shape(values, eval_files)
        found = check_records(eval_files, *eval_shape, config)
        held_out = TrainingRecords(eval_files, *found, config)
        check_length(config, held_out)
    seen = {"records": data.examples, "record files": sizes_of(files), "precision": precision}
    check_agreement(strategy, seen)
    keras.utils.set_random_seed(library_seed(values))
    with strategy.scope():
        state = build(values, model_type, config, precision)
    allow_missing = tuple(filter(None, values.allow_missing.split(",")))
    begins_with = latest_checkpoint(values.output_dir) or values.init_checkpoint
    line = restore(state, strategy, values.output_dir, values.init_checkpoint, allow_missing)
    # A worker that does not see the others' checkpoints would start from new weights.
    check_agreement(strategy, {"the step to go on from": state.step})
    say(f"model: {config}")
    say(line)
    done = state.step >= values.num_train_steps
    trains = values.do_train and not done
    longest = longest_sequence(files, data.record_format) if trains else 0
    positions = add_trained_positions(begins_with, longest)
    beside = functools.partial(
        describe, model_type=model_type, config=config, tokenizer=tokenizer, positions=positions
    )
    if chief:
        beside(values.output_dir)

    evaluator = None
    if values.do_eval or values.eval_input_file:
        evaluator = RecordsEvaluator(
            state.model,
            strategy,
            held_out.files,
            held_out.record_format,
            batch_size=values.eval_batch_size,
            max_batches=values.max_eval_steps,
            tokenizer=tokenizer,
            xla=values.xla,
        )
    if values.do_train and done and not (values.eval_input_file and state.evaluated < state.step):
        say(
            f"already at step {state.step} of {values.num_train_steps}: nothing to train "
            "(a larger --num_train_steps goes on from here)"
        )
    elif values.do_train:
        settings = training_config(values, data.record_format)
        if not done:  # else a signal came before the last evaluation
            say(training_line(values, strategy, precision, compiled, state.step, data.examples))
            part = values.train_batch_size // strategy.num_replicas_in_sync
            part //= values.gradient_accumulation_steps
            slots = len(state.optimizer.slots)
            say(memory_line(config, part, *shape, precision, values.recompute, slots=slots))
            if line := compiling_line(compiled, settings.bucket_boundaries):
                say(line)
        stopped = train(
            state,
            strategy,
            data.in_order(state, settings),
            settings,
            evaluator if values.eval_input_file else None,
            {"configuration": as_table(config), "command": as_command(values)},
            folder,
            beside,
        )
        if stopped:
            say(
                f"stopped by {stopped} after step {state.step} of {values.num_train_steps}, saved "
                f"in {values.output_dir}: the same command goes on from there"
            )
            return
    if values.export_dir and chief:
        save_google_checkpoint(state.model, os.path.join(values.export_dir, EXPORTED_NAME))
        beside(values.export_dir)
        say(f"exported to {values.export_dir}")
    if values.do_eval:
        compiles = compiled.whole and evaluator.step.run.function is None
        compiling = "; XLA compiles the model first" if compiles else ""
        say(f"evaluating on {evaluator.records:,} records{compiling}")
        results = {**evaluator.run(), "global_step": state.step}
        if chief:
            show_results(values, config, results, held_out)


def training_line(values, strategy, precision, compiled, step, examples):
    """What is about to happen: devices, precision, batch, steps, passes over the records."""
    from bert_tf.training.distribution import describe_devices

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


def show_results(values, config, results, held_out):
    """Writes and prints the evaluation, beside what guessing would give."""
    from bert_tf.input.pipeline import most_frequent_share
    from bert_tf.summaries.reporter import write_evaluation
    from bert_tf.training.evaluation import as_shown, write_results

    if not (values.do_train and values.eval_input_file):  # else training has drawn this point
        write_evaluation(values.output_dir, results, results["global_step"])
    path = write_results(values.output_dir, results)
    print("***** Eval results *****")
    for name in sorted(results):
        print(f"  {name} = {as_shown(results[name])}")
    share = most_frequent_share(
        held_out.files,
        held_out.record_format,
        config,
        values.eval_batch_size,
        values.max_eval_steps,
    )
    print(f"  (always guessing the most frequent masked word: accuracy {share:.4f})")
    print(f"written to {path}")


def training_config(values, record_format):
    """What `train` needs of the flags."""
    import tensorflow as tf

    from bert_tf.training.loop import TrainingConfig

    # On a CPU a step takes so long that a signal should not have to wait for ten.
    loop = 10 if tf.config.list_physical_devices("GPU") else 1
    names = {field.name for field in dataclasses.fields(TrainingConfig)}
    given = {name: value for name, value in dataclasses.asdict(values).items() if name in names}
    return TrainingConfig(
        **{
            **given,
            "steps_per_loop": values.steps_per_loop or loop,
            "profile_steps": read_profile_steps(values),
            "bucket_boundaries": read_bucket_boundaries(values, record_format),
        },
        seed=values.random_seed,
    )


def build(values, model_type, config, precision):
    """The model with its optimizer, at step 0; called in the strategy's scope."""
    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.training.mixed_precision import POLICIES, LossScale
    from bert_tf.training.state import TrainingState

    encoder = BertModel if model_type == "bert" else AlbertModel
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


def check_length(config, data):
    """The model's positions must cover the sequences; those of a packed row count from 0 again."""
    packed, length = data.record_format.packed_sequences, data.record_format.max_seq_length
    if not packed and length > config.max_position_embeddings:
        raise InputError(
            "--max_seq_length must be at most max_position_embeddings of the configuration, "
            f"unless rows are packed. Received: {length} and "
            f"{config.max_position_embeddings}"
        )


def as_table(config):
    """The model's configuration as Markdown."""
    from bert_tf.summaries.markdown import as_markdown_table

    return as_markdown_table(dataclasses.asdict(config))


def as_command(values):
    """The flags that were given or have a default, as Markdown."""
    lines = [f"    --{k}={v}" for k, v in dataclasses.asdict(values).items() if v is not None]
    return "\n".join(["    run_pretraining", *lines])
