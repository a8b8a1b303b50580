"""The optimizers of BERT and ALBERT with their learning-rate schedules.

Google trained with neither `keras.optimizers.AdamW` nor `keras.optimizers.Lamb`: here bias
correction is off by default, and the decay is part of the update (inside LAMB's norm).
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import keras
from keras import ops

from bert_tf.names import OPTIMIZER_NAMES

# Names that are not decayed, as in bert/optimization.py ("layer_norm" and "bias" occur in our
# variables' paths, "LayerNorm" in Google's names).
EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")

# The gradient is clipped to this global norm, as in bert/optimization.py.
CLIP_NORM = 1.0

Rate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule


@keras.saving.register_keras_serializable(package="bert_tf")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial decay to zero, as in google-research/albert optimization.py.

    The decay is counted from step 0, so at the end of the warm-up the rate drops to the decayed
    rate. The rates equal Google's, except that they are 0 before `start_warmup_step`, where
    Google's are negative.

    Args:
        initial_learning_rate: the target rate of the warm-up.
        num_train_steps: updates until the rate is 0.
        num_warmup_steps: updates of warm-up; 0 for none.
        power: 1 for BERT's linear decay.
        start_warmup_step: the update at which the warm-up begins.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        num_train_steps: int,
        num_warmup_steps: int,
        power: float = 1.0,
        start_warmup_step: int = 0,
    ) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.power = power
        self.start_warmup_step = start_warmup_step

    def __call__(self, step: Any) -> Any:
        """Returns the learning rate after `step` updates, a float32 scalar."""
        step = ops.cast(step, "float32")
        done = ops.minimum(step, float(self.num_train_steps)) / float(self.num_train_steps)
        rate = self.initial_learning_rate * (1.0 - done) ** self.power
        if self.num_warmup_steps:
            warm = step - float(self.start_warmup_step)
            warming = self.initial_learning_rate * warm / float(self.num_warmup_steps)
            rate = ops.where(warm < self.num_warmup_steps, ops.maximum(warming, 0.0), rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return dict(vars(self))


# The share of the time budget used for warm-up, close to RoBERTa's (arXiv:1907.11692, table 9:
# 24,000 of 500,000 updates).
TIMED_WARMUP = 0.05


class TimedDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then polynomial decay to zero, over a time budget instead of updates.

    As in "Cramming" (arXiv:2212.14034), the rate reaches zero when the time is up, however fast the
    machine is. The schedule is not saved with an optimizer.

    Args:
        initial_learning_rate: the target rate of the warm-up.
        spent: a variable with the spent share of the time, from 0 to 1, which the training loop
            sets between updates.
        power: 1 for a linear decay.
    """

    def __init__(self, initial_learning_rate: float, spent: Any, power: float = 1.0) -> None:
        self.initial_learning_rate = initial_learning_rate
        self.spent = spent
        self.power = power

    def __call__(self, step: Any) -> Any:
        """Returns the current learning rate, a float32 scalar. `step` is ignored."""
        spent = ops.convert_to_tensor(self.spent)
        warm = ops.minimum(spent / TIMED_WARMUP, 1.0)
        return self.initial_learning_rate * warm * (1.0 - spent) ** self.power


class Slot(NamedTuple):
    """An array that an optimizer keeps for every weight, in the weight's shape."""

    suffix: str  # the name in a checkpoint is WEIGHT/SUFFIX, as in Google's files
    initial: float = 0.0  # the value before the first update


class DecayOptimizer(keras.optimizers.Optimizer):
    """An optimizer that computes updates as a function of values, and decays some of the weights.

    A subclass defines the table `slots` and the method `updated`, which are all that training,
    checkpoints and the memory estimate need.

    Args:
        learning_rate: a float or a `LearningRateSchedule`.
        weight_decay_rate: this times the weight is added to the update.
        exclude_from_weight_decay: regular expressions that are searched in the variables' paths.
    """

    slots: dict[str, Slot] = {}

    def __init__(
        self,
        learning_rate: Rate,
        weight_decay_rate: float = 0.01,
        exclude_from_weight_decay: Sequence[str] = EXCLUDE_FROM_WEIGHT_DECAY,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.weight_decay_rate = weight_decay_rate
        self.exclude_from_weight_decay_patterns = tuple(exclude_from_weight_decay)

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the slots of every variable."""
        if self.built:
            return
        super().build(variables)
        # How many of the `iterations` changed no weight, as loss or gradient was not finite.
        self.skipped = keras.Variable(0, dtype="int", trainable=False, name="skipped")
        self._untrack_variable(self.skipped)  # else Keras would not read .keras files without it
        slots = self.slots.values()
        # One list per slot, with one entry per variable.
        self._slot_variables = self.add_optimizer_variables(
            variables,
            [slot.suffix for slot in slots],
            [keras.initializers.Constant(slot.initial) for slot in slots],
        )
        # By path, because Keras's own exclusion checks only the last part of the name.
        self._decayed = [
            not any(re.search(p, v.path) for p in self.exclude_from_weight_decay_patterns)
            for v in variables
        ]

    def slot_variables(self, variable: keras.Variable) -> tuple[keras.Variable, ...]:
        """Returns the slot variables of a variable, in the order of `slots`."""
        index = self._get_variable_index(variable)
        return tuple(variables[index] for variables in self._slot_variables)

    def is_decayed(self, variable: keras.Variable) -> bool:
        """Returns True if weight decay applies to the variable."""
        return self._decayed[self._get_variable_index(variable)]

    def updated(
        self,
        weight: Any,
        slots: tuple[Any, ...],
        gradient: Any,
        learning_rate: Any,
        decayed: bool,
        step: Any,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Computes one update of one variable as a function of values, without assigning any.

        Args:
            slots: the values of the weight's slots, in the order of the table.
            gradient: the weight's clipped gradient.
            decayed: whether weight decay applies to the weight.
            step: the number of previous updates, without skipped ones; a scalar.

        Returns:
            The new weight, and a tuple of the new slots.
        """
        raise NotImplementedError

    def update_step(self, gradient: Any, variable: keras.Variable, learning_rate: Any) -> None:
        """Updates one variable, for callers of Keras's `apply`."""
        slots = self.slot_variables(variable)
        # Keras calls this with TensorFlow variables, whose `value` is a method.
        weight, *values = map(ops.convert_to_tensor, (variable, *slots))
        # A table's gradient may be tf.IndexedSlices, whose rows a sum with a tensor adds up.
        gradient = ops.add(ops.zeros_like(weight), gradient)
        decayed = self.is_decayed(variable)
        step = ops.subtract(self.iterations, self.skipped)
        weight, values = self.updated(weight, tuple(values), gradient, learning_rate, decayed, step)
        self.assign(variable, weight)
        for slot, value in zip(slots, values, strict=True):
            self.assign(slot, value)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "weight_decay_rate": self.weight_decay_rate,
            "exclude_from_weight_decay": list(self.exclude_from_weight_decay_patterns),
        }


class _GoogleAdam(DecayOptimizer):
    """The moments that `AdamWeightDecay` and `Lamb` share.

    Args:
        learning_rate, weight_decay_rate, kwargs: as for `DecayOptimizer`.
        beta_1, beta_2: the decay rates of the first and the second moment.
        epsilon: added to the root of the second moment.
        bias_correction: whether to correct the moments for their initial zeros (arXiv:1412.6980,
            section 3). Google's code does not, which makes the first hundreds of updates larger,
            up to 6.6 times for a constant gradient.
    """

    slots = {"first_moment": Slot("adam_m"), "second_moment": Slot("adam_v")}

    def __init__(
        self,
        learning_rate: Rate,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        bias_correction: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay_rate, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction

    def updated(
        self,
        weight: Any,
        slots: tuple[Any, ...],
        gradient: Any,
        learning_rate: Any,
        decayed: bool,
        step: Any,
    ) -> tuple[Any, tuple[Any, ...]]:
        first, second = slots
        gradient = ops.cast(gradient, weight.dtype)
        first = self.beta_1 * first + (1.0 - self.beta_1) * gradient
        second = self.beta_2 * second + (1.0 - self.beta_2) * ops.square(gradient)
        mean, square = first, second
        if self.bias_correction:
            count = ops.cast(step, weight.dtype) + 1.0
            # Not 1 - beta ** count: 1 - 0.999 ** 1 has only five correct digits in float32.
            mean = first / -ops.expm1(count * math.log(self.beta_1))
            square = second / -ops.expm1(count * math.log(self.beta_2))
        update = mean / (ops.sqrt(square) + self.epsilon)
        if decayed:
            update = self.scaled(update + self.weight_decay_rate * weight, weight)
        return weight - ops.cast(learning_rate, weight.dtype) * update, (first, second)

    def scaled(self, update: Any, weight: Any) -> Any:
        """Scales the update of a decayed variable, before the learning rate is applied."""
        return update

    def get_config(self):
        names = ("beta_1", "beta_2", "epsilon", "bias_correction")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="bert_tf")
class AdamWeightDecay(_GoogleAdam):
    """Adam with decay inside the update, as in google-research/bert optimization.py.

    With bias correction it is AdamW (arXiv:1711.05101), like `torch.optim.AdamW`.
    """


@keras.saving.register_keras_serializable(package="bert_tf")
class Lamb(_GoogleAdam):
    """LAMB (arXiv:1904.00962, version 1), as in google-research/albert lamb_optimizer.py.

    The update, including decay, is scaled by |weight| / |update| over the whole variable.
    Variables without decay are not scaled.
    """

    def scaled(self, update: Any, weight: Any) -> Any:
        """Multiplies the update by the trust ratio, which is 1 if either norm is 0."""
        weight_norm = ops.sqrt(ops.sum(ops.square(ops.convert_to_tensor(weight))))
        update_norm = ops.sqrt(ops.sum(ops.square(update)))
        both = ops.logical_and(weight_norm > 0, update_norm > 0)
        ratio = ops.where(both, weight_norm / ops.where(both, update_norm, 1.0), 1.0)
        return update * ratio


def clip_factor(norm: Any) -> Any:
    """Returns the factor that scales a gradient of this global norm down to at most `CLIP_NORM`.

    The norm must be computed from the gradient summed over all replicas.
    """
    return CLIP_NORM * ops.minimum(1.0 / norm, 1.0 / CLIP_NORM)


OPTIMIZERS = dict(zip(OPTIMIZER_NAMES, (AdamWeightDecay, Lamb), strict=True))
