"""The loss scale of float16 training (arXiv:1710.03740, section 3.2)."""

import tensorflow as tf

# float16 holds nothing above 65,504; the gradient is scaled up so that its small numbers are not
# rounded to 0, and the scale is halved whenever that goes too far.
INITIAL_SCALE = 2.0**15

# Good updates until the scale is doubled; as Micikevicius et al. and every mixed-precision library.
GROWTH_INTERVAL = 2000

# Below this the gradient is not too long for float16, but broken.
MINIMUM_SCALE = 1.0


class LossScale:
    """A scale that halves when a gradient overflows and doubles after many that did not.

    Make it in the strategy's scope.

    Attributes:
        scale: what the loss is multiplied by.
        good_steps: updates since the scale last changed.
    """

    def __init__(self):
        self.scale = tf.Variable(INITIAL_SCALE, trainable=False, name="loss_scale")
        self.good_steps = tf.Variable(0, trainable=False, name="loss_scale_good_steps")

    def update(self, finite):
        """Moves on after a step; in the cross-replica context.

        Args:
            finite: whether the step's gradient was, reduced over all replicas.
        """
        good_steps = tf.where(finite, self.good_steps + 1, 0)
        grows = good_steps >= GROWTH_INTERVAL
        factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.scale.assign(self.scale * factor)
        self.good_steps.assign(tf.where(grows, 0, good_steps))
