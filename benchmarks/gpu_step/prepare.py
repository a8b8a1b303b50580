"""The commands that need TensorFlow: prepare a training, finish it."""

import functools
import os

import numpy as np

from benchmarks.gpu_step.state import STATE_FILE, read_state, write_arrays
from bert_common.errors import InputError
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.pretrain import build, load_records, model_files_writer
from run_scripts.pretraining_job import make_job


def prepare(folder, flags):
    """Writes the programs and the state of a training, by the flags of run_pretraining."""
    command = functools.partial(_in_session, _prepare, folder)
    return run_program(command, PretrainFlags, ["gpu_step prepare", *flags])


def finish(folder, flags):
    """Writes the state of a training as a checkpoint into --output_dir."""
    command = functools.partial(_in_session, _finish, folder)
    return run_program(command, PretrainFlags, ["gpu_step finish", *flags])


def _in_session(command, folder, given):
    """Calls a command with the job, its session, records and restored state."""
    job = make_job(given)
    flags = job.flags
    if flags.precision == "float16" or flags.bucket_boundaries not in (None, "", "none"):
        raise InputError(
            "an exported step needs --precision=float32 or bfloat16 and no --bucket_boundaries. "
            f"Received: --precision={flags.precision}, "
            f"--bucket_boundaries={flags.bucket_boundaries}"
        )
    start_tensorflow(flags)
    from run_scripts.session import open_session

    with open_session(flags, "on", None, None) as session:
        if session.strategy.num_replicas_in_sync > 1:
            raise InputError(
                "a step is exported for one device, which --device=cpu gives. Received: "
                f"{session.strategy.num_replicas_in_sync} devices"
            )
        records, _ = load_records(job, session)
        command(folder, job, session, records)


def _prepare(folder, job, session, records):
    from benchmarks.gpu_step.export import export_step

    state = build(job, session)
    config = session.training_config(job.flags, bucket_boundaries=())
    data = records.in_order(state, config)
    batch = next(iter(data.batches(session.strategy, config, state.step)))
    details = {
        "model": job.model.model_type,
        "precision": session.precision,
        # As `state.learning_rate` reads them.
        "schedule": state.optimizer._learning_rate.get_config(),
    }
    export_step(folder, state, config, batch, details)
    arrays = {name: variable.numpy() for name, variable in _variables(state).items()}
    path = os.path.join(folder, STATE_FILE)
    write_arrays(path, _small({**arrays, "iterations": np.int64(state.step)}))
    for name in sorted(os.listdir(folder)):
        size = os.path.getsize(os.path.join(folder, name))
        print(f"{name}: {size / 1e6:.2f} MB")


def _small(arrays):
    """The same numbers in fewer bytes: no slots of zeros, which is what they begin with."""
    kept = {
        name: values
        for name, values in arrays.items()
        if not name.startswith("slots/") or values.any()
    }
    return {name: _half(values) for name, values in kept.items()}


def _half(values):
    """The same numbers in float16 if it holds them; others as they are."""
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if values.dtype == np.float32 and np.array_equal(half, values) else values


def _variables(state):
    """The variables of a `TrainingState` by their names in a state."""
    from bert_tf.checkpoint import google_variables

    suffixes = [slot.suffix for slot in state.optimizer.slots.values()]
    variables = {}
    for name, variable in google_variables(state.model).items():
        variables[f"weights/{name}"] = variable
        slots = state.optimizer.slot_variables(variable)
        pairs = zip(suffixes, slots, strict=True)
        variables |= {f"slots/{name}/{suffix}": slot for suffix, slot in pairs}
    return variables


def _finish(folder, job, session, records):
    from bert_tf.training.state import save

    state = build(job, session)
    config = session.training_config(job.flags, bucket_boundaries=())
    records.in_order(state, config)  # sets the order that the next updates go on in
    arrays = read_state(os.path.join(folder, STATE_FILE))
    step = int(arrays["iterations"])
    if step < state.step:
        raise InputError(
            f"{folder} must be ahead of --output_dir. Received: step {step}, and a "
            f"checkpoint at step {state.step}"
        )
    write_files = model_files_writer(job, state, records)
    for name, variable in _variables(state).items():
        if name in arrays:  # a weight without a gradient has no slots there
            variable.assign(arrays[name])
    state.skipped += int(arrays.get("curves/skipped", np.zeros(0)).sum())
    state.optimizer.iterations.assign(step)
    state.step = step
    os.makedirs(job.flags.output_dir, exist_ok=True)
    write_files(job.flags.output_dir)
    save(state, config)
    print(f"step {step} is saved in {job.flags.output_dir}: run_pretraining goes on from there")
