"""Implements the commands that need TensorFlow: `export`, `prepare` and `finish`."""

import functools
import itertools
import os

import numpy as np

from benchmarks.gpu_step.state import STATE_FILE, read_state, write_arrays
from benchmarks.speed.contender_steps.project import project_model
from benchmarks.speed.contender_steps.shared import random_batch, read_config
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.pretrain import build, load_records, model_files_writer
from run_scripts.pretraining_job import make_job

PREDICTIONS = {128: 20, 512: 76}  # masked positions of a row, as in google-research/bert's commands


def export(arguments, others):
    """Writes the programs of published sizes into folders named after them."""
    import keras

    from benchmarks.gpu_step.export import export_step
    from bert_tf.training.state import TrainingState
    from bert_tf.training.step import StepConfig

    choices = (arguments.models, arguments.lengths, arguments.precisions, arguments.recompute)
    for model, length, precision, recompute in itertools.product(*choices):
        rows = arguments.batch or max(1, arguments.tokens // length)
        name = f"{model}_{length}_{precision}_{recompute}_{rows}"
        keras.backend.clear_session()
        kind, size = model.split("_")
        config = read_config(kind, size=size)
        predictions = PREDICTIONS.get(length, max(1, round(0.15 * length)))
        trained = project_model({"model": kind, "precision": precision}, config)
        export_step(
            os.path.join(arguments.folder, name),
            TrainingState(*trained),
            StepConfig(recompute=recompute),
            random_batch(config, rows, length, predictions),
            {"model": model, "precision": precision},
        )
        print(name, flush=True)


def prepare(arguments, others):
    """Writes the programs and the state of a training."""
    command = functools.partial(_in_session, _prepare, arguments)
    return run_program(command, PretrainFlags, ["gpu_step prepare", *others])


def finish(arguments, others):
    """Writes the state of a training as a checkpoint into --output_dir."""
    command = functools.partial(_in_session, _finish, arguments)
    return run_program(command, PretrainFlags, ["gpu_step finish", *others])


def _in_session(command, arguments, given):
    """Calls a command with its arguments, the job, its session and its records."""
    job = make_job(given)
    flags = job.flags
    assert flags.precision != "float16" and flags.bucket_boundaries in (None, "", "none")
    start_tensorflow(flags)
    from run_scripts.session import open_session

    with open_session(flags, "on", None) as session:
        assert session.strategy.num_replicas_in_sync == 1, "--device=cpu gives one device"
        records, _ = load_records(job, session)
        command(arguments, job, session, records)


def _prepare(arguments, job, session, records):
    from benchmarks.gpu_step.export import export_step

    state = build(job, session)
    config = session.training_config(job.flags, bucket_boundaries=())
    data = records.in_order(state, config)
    batch = next(iter(data.batches(session.strategy, config, state.step)))
    details = {
        "model": job.model.model_type,
        "precision": session.precision,
        "schedule": state.optimizer._learning_rate.get_config(),
    }
    export_step(arguments.folder, state, config, batch, details)
    arrays = {name: variable.numpy() for name, variable in _variables(state).items()}
    path = os.path.join(arguments.folder, STATE_FILE)
    counts = {"iterations": np.int64(state.step), "skipped": state.optimizer.skipped.numpy()}
    write_arrays(path, _small({**arrays, **counts}))
    for name in sorted(os.listdir(arguments.folder)):
        size = os.path.getsize(os.path.join(arguments.folder, name))
        print(f"{name}: {size / 1e6:.2f} MB")


def _small(arrays):
    """Returns the arrays in fewer bytes, without slots that still have their initial zeros."""
    kept = {
        name: values
        for name, values in arrays.items()
        if not name.startswith("slots/") or values.any()
    }
    return {name: _half(values) for name, values in kept.items()}


def _half(values):
    """Returns an array in float16 if that is exact, else unchanged."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if values.dtype == np.float32 and np.array_equal(half, values) else values


def _variables(state):
    """Returns the variables of a `TrainingState` by their names in a state file."""
    from bert_tf.checkpoint import google_variables

    suffixes = [slot.suffix for slot in state.optimizer.slots.values()]
    variables = {}
    for name, variable in google_variables(state.model).items():
        variables[f"weights/{name}"] = variable
        slots = state.optimizer.slot_variables(variable)
        pairs = zip(suffixes, slots, strict=True)
        variables |= {f"slots/{name}/{suffix}": slot for suffix, slot in pairs}
    return variables


def _finish(arguments, job, session, records):
    from bert_tf.training.state import save

    state = build(job, session)
    config = session.training_config(job.flags, bucket_boundaries=())
    records.in_order(state, config)  # sets the order of the records for the next updates
    arrays = read_state(os.path.join(arguments.folder, STATE_FILE))
    step = int(arrays["iterations"])
    assert step >= state.step  # otherwise the checkpoint is newer
    write_files = model_files_writer(job, state, records)
    for name, variable in _variables(state).items():
        if name in arrays:  # a weight without a gradient has no slots there
            variable.assign(arrays[name])
    state.optimizer.skipped.assign_add(int(arrays.get("curves/skipped", np.zeros(0)).sum()))
    state.optimizer.iterations.assign(step)
    state.step = step
    os.makedirs(job.flags.output_dir, exist_ok=True)
    write_files(job.flags.output_dir)
    save(state, config)
    print(f"step {step} is saved in {job.flags.output_dir}: run_pretraining goes on from there")
