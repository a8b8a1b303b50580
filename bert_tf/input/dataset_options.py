"""Sets the options of tf.data that every input shares."""

import tensorflow as tf


def set_options(dataset: tf.data.Dataset, private_threads: int | None = None) -> tf.data.Dataset:
    """The dataset without tf.data's tuner, and if wanted with threads of its own, not shared ones.

    The tuner's thread sleeps for up to a minute at a time, and whoever lets go of an iterator
    waits for its end: each program would be idle for so long after its last step. It would choose
    the number of threads for maps; without it that follows from the number of cores. Prefetching
    with `tf.data.AUTOTUNE` has a tuner of its own, which stays.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    if private_threads is not None:
        options.threading.private_threadpool_size = private_threads
    return dataset.with_options(options)
