"""Estimates the cost of a training from the phases of its job."""

import dataclasses
from collections.abc import Iterable, Sequence

from bert_tf.config import EncoderConfig
from bert_tf.costs.cards import Card
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import GIB, WEIGHT_BYTES, count_weights, estimate_bytes
from run_scripts.planning.corpus import HOUR

# The share of a device's memory to plan for; the estimate is within 20 % in most cases.
MEMORY_SHARE = 0.9

# A checkpoint holds each weight and its two moments.
CHECKPOINT_ARRAYS = 3


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of pre-training with rows of one length."""

    length: int  # T
    predictions: int  # P of a row
    sequences: int  # S of a row
    batch: int  # rows of an update, over all devices
    updates: float
    token_dropping: float = 0.0  # the share of the tokens that skip the middle layers

    def row_flops(self, config: EncoderConfig) -> int:
        """Returns the operations of a forward and a backward pass over one row."""
        sizes = (self.length, self.predictions, self.sequences, self.token_dropping)
        return training_flops(config, *sizes)


@dataclasses.dataclass(frozen=True)
class DevicePlan:
    """A training on several cards of one kind."""

    # --gradient_accumulation_steps of each phase; empty if it does not fit.
    accumulation: tuple[int, ...]
    memory_bytes: tuple[float, ...]  # of a device, the estimate for each phase
    hours: float  # of all phases, on all cards together
    rows_per_second: tuple[float, ...]  # the rows that each phase reads, all cards together


def passes_of(phases: Iterable[Phase], rows_of_a_pass: Iterable[float]) -> float:
    """Returns how often the phases read the text, given the rows of a pass for each of them."""
    pairs = zip(phases, rows_of_a_pass, strict=True)
    return sum(phase.updates * phase.batch / rows for phase, rows in pairs)


def with_passes(
    phases: Sequence[Phase], rows_of_a_pass: Iterable[float], passes: float
) -> list[Phase]:
    """Returns the phases with updates scaled so that they read the text `passes` times."""
    factor = passes / passes_of(phases, rows_of_a_pass)
    return [dataclasses.replace(phase, updates=phase.updates * factor) for phase in phases]


def phase_flops(config: EncoderConfig, phase: Phase) -> float:
    """Returns the operations of all updates of a phase."""
    return phase.updates * phase.batch * phase.row_flops(config)


def plan_devices(
    config: EncoderConfig, phases: Sequence[Phase], card: Card, gpus: int, utilisation: float
) -> DevicePlan:
    """Returns the `DevicePlan` for `gpus` cards, which must divide every batch.

    `utilisation` is the assumed share of the cards' peak speed that training reaches.
    """
    speed = gpus * card.bfloat16_flops * utilisation
    fits = [_least_accumulation(config, phase, card, gpus) for phase in phases]
    hours = sum(phase_flops(config, phase) for phase in phases) / speed / HOUR
    row_flops = [phase.row_flops(config) for phase in phases]
    if not all(fits):
        return DevicePlan((), (), hours, ())
    return DevicePlan(
        accumulation=tuple(count for count, _ in fits),
        memory_bytes=tuple(memory for _, memory in fits),
        hours=hours,
        rows_per_second=tuple(speed / flops for flops in row_flops),
    )


def _least_accumulation(config, phase, card, gpus):
    """Returns the fewest microbatches that fit into a card's memory and their bytes, or None."""
    share = phase.batch // gpus
    for count in range(1, share + 1):
        if share % count:
            continue
        sizes = (share // count, phase.length, phase.predictions, "bfloat16")
        memory = estimate_bytes(config, *sizes, token_dropping=phase.token_dropping)
        if memory <= MEMORY_SHARE * card.memory_gib * GIB:
            return count, memory
    return None


def checkpoint_bytes(config: EncoderConfig) -> int:
    """Returns the bytes of a checkpoint, with the optimizer's moments."""
    return CHECKPOINT_ARRAYS * WEIGHT_BYTES * count_weights(config)
