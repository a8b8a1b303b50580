"""Defines one record per pre-training objective with everything in which the objectives differ."""

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from bert_tf.memory_estimate import memory_line
from bert_tf.names import REPLACED_TOKENS_NAMES
from electra_tf.costs import memory_line as memory_line_of_two
from model_formats.encoders import ELECTRA, load_class

if TYPE_CHECKING:  # they import Keras
    import keras

    from bert_tf.encoder import EncoderModel
    from bert_tf.objective import Objective


@dataclasses.dataclass(frozen=True)
class PretrainingObjective:
    """The properties of a pre-training objective."""

    name: str  # its value of run_pretraining's --objective
    predicts: str  # its predictions, in words
    description: str  # for model cards, after the model's name
    model: str  # "module.Class" of its `EncoderModel`, which imports Keras and has an `objective`
    # (the model, the name of the sentence objective or None) -> the `Objective` that an evaluation
    # reports.
    measured: "Callable[[EncoderModel, str | None], Objective]"
    # (the results of an evaluation, a function that returns the share of the most frequent masked
    # token) -> a line about the results of a trivial model.
    baseline: Callable[[dict[str, float], Callable[[], float]], str]
    # (configuration, sizes) -> the line before training, as `bert_tf.memory_estimate.memory_line`.
    memory_line: Callable[..., str] = memory_line
    uses_pairs: bool = True  # whether it has a sentence objective
    encoders: tuple[str, ...] = ()  # the names of the encoders that support it; empty for all
    # Whether --token_dropping is supported, which chooses tokens by the `piece_losses` of the
    # model's `Objective`. Recorded here as flags are checked before the model can be imported.
    drops_tokens: bool = False
    # The parts of its model that its files may lack as a whole.
    may_lack: tuple[str, ...] = ("pooler", "masked_lm", "next_sentence")
    # A regular expression for Google's names of weights that identifies its checkpoints; None for
    # the objective of all other checkpoints.
    weights: str | None = None

    @property
    def model_class(self) -> "type[EncoderModel]":
        """The model's class."""
        return load_class(self.model)

    def make_model(self, encoder: "keras.Model", pairs: str | None = None) -> "EncoderModel":
        """Builds the model of an encoder; `pairs` is the sentence objective's name or None."""
        options: dict[str, Any] = {"sentence_objective": pairs} if self.uses_pairs else {}
        return self.model_class(encoder, **options)


def _masked_words_measured(model, pairs):
    from bert_tf.pretraining import pretraining_objective

    return pretraining_objective(pairs)


def _masked_words_baseline(results, most_frequent_share):
    share = most_frequent_share()
    return f"always predicting the most frequent masked token: accuracy {share:.4f}"


def _replaced_tokens_baseline(results, most_frequent_share):
    originals = 1 - results.get("replaced_share", 0.0)
    words = _masked_words_baseline(results, most_frequent_share)
    return f"calling every token an original: accuracy {originals:.4f}; {words}"


MASKED_WORDS = PretrainingObjective(
    name="mlm",
    predicts="masked tokens and, if the records have sentence pairs, the next-sentence or "
    "sentence-order label",
    description="pre-trained on masked words",
    model="bert_tf.pretraining.PretrainingModel",
    measured=_masked_words_measured,
    baseline=_masked_words_baseline,
    drops_tokens=True,
)
REPLACED_TOKENS = PretrainingObjective(
    name="rtd",
    predicts="which tokens a generator replaced, as in ELECTRA",
    description="pre-trained to find replaced tokens",
    model="electra_tf.replaced_tokens.ReplacedTokensModel",
    measured=lambda model, pairs: model.objective,
    baseline=_replaced_tokens_baseline,
    memory_line=memory_line_of_two,
    uses_pairs=False,
    encoders=(ELECTRA.name,),
    may_lack=("masked_lm", "discriminator", "generator"),
    weights=REPLACED_TOKENS_NAMES,
)
OBJECTIVES = {objective.name: objective for objective in (MASKED_WORDS, REPLACED_TOKENS)}


def objective_of(names: Collection[str]) -> PretrainingObjective:
    """Returns the objective of a checkpoint with Google's names `names`."""
    for objective in OBJECTIVES.values():
        if objective.weights and any(re.match(objective.weights, name) for name in names):
            return objective
    return MASKED_WORDS
