"""Announces a training: its model, devices, batches, steps and memory."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bert_tf.config import EncoderConfig
from bert_tf.costs.dropped_tokens import first_short_call, kept_tokens
from bert_tf.memory_estimate import memory_line
from bert_tf.names import is_blockwise
from bert_tf.training.distribution import describe_devices
from bert_tf.training.loop import TrainingConfig
from bert_tf.training.state import TrainingState
from run_scripts.job import Job

if TYPE_CHECKING:  # it imports this module
    from run_scripts.session import Session


@dataclasses.dataclass(frozen=True)
class Workload:
    """The size of a training run, for the lines that announce it."""

    examples: int  # the number of examples
    length: int  # the maximum number of tokens in a sequence
    predictions: int = 1  # masked positions of a sequence
    rows: int = 1  # sequences of an example
    token_dropping: float = 0.0  # the share of the tokens that skip the middle layers
    sequences: int = 1  # places for sequences in a packed row
    predicts_words: bool = False  # whether the predictions are words
    memory_line: Callable[..., str] = memory_line  # describes how much memory the run needs


def model_line(title: str, config: EncoderConfig) -> str:
    """Returns a line with a model's sizes; its folder will have the whole configuration."""
    sizes = [
        f"{config.num_hidden_layers} layers of {config.hidden_size}",
        f"{config.num_attention_heads} attention heads",
        f"intermediate size {config.intermediate_size:,}",
        f"{config.vocab_size:,} tokens",
        f"{config.max_position_embeddings:,} positions",
    ]
    more = {name: getattr(config, name, None) for name in ("embedding_size", "generator_size")}
    if more["embedding_size"] == config.hidden_size:
        del more["embedding_size"]
    sizes += [f"{name} {value}" for name, value in more.items() if value is not None]
    return f"model: {title}, {', '.join(sizes)}"


def announce(
    session: "Session",
    job: Job[Any],
    state: TrainingState,
    config: TrainingConfig,
    workload: Workload,
) -> None:
    """Prints devices, batches and steps, then the memory, then whether XLA compiles."""
    on_device = config.train_batch_size // session.strategy.num_replicas_in_sync
    microbatches = config.gradient_accumulation_steps
    split = f", in {microbatches} microbatches" if microbatches > 1 else ""
    session.print(
        f"training on {describe_devices(session.strategy)} in {session.precision}, XLA "
        f"{session.compilation}, {config.train_batch_size} examples per update ({on_device} per "
        f"device{split})"
    )
    session.print(_steps_line(state, config, workload.examples))
    if workload.token_dropping:
        session.print(_dropping_line(job.config, workload))
    session.print(_memory_line(session, job, state, config, workload))
    if is_blockwise(job.flags.attention, workload.length):
        session.print("attention is computed for one block of queries at a time")
    session.print(_compiling_line(session.compilation, config.bucket_boundaries))


def _steps_line(state, config, examples):
    """Returns a line with the steps that are left, or the hours, and the number of examples."""
    lengths = ", ".join(map(str, config.bucket_boundaries))
    of = f"{examples:,} examples{', padded to ' if lengths else ''}{lengths}"
    if state.time_budget is not None:
        left = (state.time_budget.seconds - state.time_budget.spent) / 3600
        return f"step {state.step + 1} onwards for {left:.2f} hours from {of}"
    batch = config.train_batch_size
    seen = state.order.examples_before(state.step) if state.order else state.step * batch
    seen += (config.num_train_steps - state.step) * batch
    steps = f"steps {state.step + 1} to {config.num_train_steps}"
    return f"{steps}, {seen / examples:.1f} passes over {of}"


def _dropping_line(config, workload):
    """Returns a line that says which layers compute how many tokens of a row."""
    calls, length = config.num_block_calls, workload.length
    share, places = workload.token_dropping, workload.predictions
    kept = kept_tokens(length, share, places, workload.sequences)
    return (
        f"layers {first_short_call(calls) + 1} to {calls - 1} of {calls} compute {kept} of "
        f"{length} tokens"
    )


def _memory_line(session, job, state, config, workload):
    """Returns a line with the memory that a device needs."""
    parts = session.strategy.num_replicas_in_sync * config.gradient_accumulation_steps
    rows = config.train_batch_size // parts * workload.rows
    blockwise = is_blockwise(job.flags.attention, workload.length)
    options = {"slots": len(state.optimizer.slots), "blockwise": blockwise}
    if workload.token_dropping:
        options["token_dropping"] = workload.token_dropping
    if job.teacher:
        predictions = workload.predictions if workload.predicts_words else 0
        of_teacher = rows, workload.length, predictions, session.precision, blockwise
        options["beside"] = job.teacher.bytes_beside(*of_teacher)
    sizes = rows, workload.length, workload.predictions, session.precision, config.recompute
    return workload.memory_line(job.config, *sizes, **options)


def _compiling_line(compilation, lengths):
    if not compilation.update:
        return "compiling the training step, which may take a minute"
    line = "compiling the training step with XLA, which may take minutes"
    if len(lengths) > 1:
        line += f" (once for each length: {', '.join(map(str, lengths))})"
    return line
