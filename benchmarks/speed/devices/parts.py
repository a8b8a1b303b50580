"""Times the parts of a training step, each alone: forward and backward, reduction, update."""

import time


def time_parts(step, batch, whole, count):
    """Seconds of each part of a step.

    Args:
        step: a `bert_tf.training.step.TrainingStep` that has run.
        batch: a batch as its strategy distributes them.
        whole: seconds of a whole step, in the loop.
        count: how often each part is run.

    Returns:
        A dict of seconds: "forward and backward", "reduction", "update", "step", and "idle", what
        the step takes beyond the three. It is negative where parts of the step overlap.
    """
    import tensorflow as tf

    from bert_tf.training.replicas import all_reduce, graph

    def replica_gradients(batch):
        context = tf.distribute.get_replica_context()
        objective = step.model.objective
        denominators = objective.denominators(objective.weight_sums(batch))
        sums, gradients = step.forward_backward(
            [v.value for v in step.weights],
            tf.convert_to_tensor(step.optimizer.iterations.value),
            tf.convert_to_tensor(context.replica_id_in_sync_group, tf.int32),
            batch,
            denominators,
            tf.constant(1.0, step.dtype),
        )
        return sums, denominators, gradients

    def replica_reduction(gradients):
        return all_reduce(tf.distribute.get_replica_context(), gradients)

    def replica_update(sums, denominators, gradients):
        context = tf.distribute.get_replica_context()
        trained = tuple(range(len(gradients)))
        return step.update(context, trained, (sums, denominators, gradients))

    strategy = step.strategy
    runs = [
        graph(lambda *arguments, part=part: strategy.run(part, args=arguments))
        for part in (replica_gradients, replica_reduction, replica_update)
    ]
    sums, denominators, gradients = runs[0](batch)
    arguments = ((batch,), (gradients,), (sums, denominators, gradients))
    names = ("forward and backward", "reduction", "update")
    seconds = {
        name: _seconds(run, given, count)
        for name, run, given in zip(names, runs, arguments, strict=True)
    }
    return {**seconds, "step": whole, "idle": whole - sum(seconds.values())}


def _seconds(run, arguments, count):
    """How long a call takes, the first one, which compiles it, not counted."""
    import tensorflow as tf

    run(*arguments)
    tf.test.experimental.sync_devices()
    start = time.perf_counter()
    for _ in range(count):
        run(*arguments)
    tf.test.experimental.sync_devices()
    return (time.perf_counter() - start) / count
