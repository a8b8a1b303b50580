"""Computes only the matrix products of a training step, or one bare product.

Shapes: B batch, T tokens, N heads, D head size, H hidden, E embedding, I intermediate, Q queries,
V vocabulary, P predictions.
"""

import math

from benchmarks.speed.contender_steps.shared import task_config, timed

MATRIX = 2048  # large enough for the product to run at the machine's full speed


def products(task):
    """Prepares only the matrix products of one step, forward and backward, for timing."""
    compute, *arguments = products_function(task)
    return timed(lambda: compute(*arguments), lambda results: float(results[0][0, 0]))


def products_function(task):
    """Returns a function that computes the step's matrix products, and its random arguments.

    The function contains only the model's products; a product's gradient is two more. Heads are
    split only by a reshape, which moves no data, and the last block runs at the first positions
    instead of the masked ones. All results are returned, so that XLA cannot omit any.
    """
    import tensorflow as tf

    config, _ = task_config(task)
    operands = random_operands(task, config)
    gradients = (  # with respect to the outputs
        random(task, task["batch"], 2),
        random(task, task["batch"] * task["predictions"], config.vocab_size),
    )

    @tf.function(jit_compile=task["xla"] != "off")
    def compute(operands, output_gradients):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            outputs = forward(operands, task, config)
        gradients = tape.gradient(outputs, operands, output_gradients=output_gradients)
        return tf.nest.flatten((outputs, gradients))

    return compute, operands, gradients


def random(task, *shape, scale=1.0):
    """Returns a random tensor in the task's precision."""
    import tensorflow as tf

    return tf.cast(tf.random.normal(shape) * scale, tf.as_dtype(task["precision"]))


def random_operands(task, config):
    """Returns the operands of the step's products, the input and one weight per product."""
    h, e, i = config.hidden_size, config.embedding_size, config.intermediate_size
    t, d = task["length"], h // config.num_attention_heads

    def weight(rows, columns, scale=1.0):  # multiplying by it keeps the scale of the input
        return random(task, rows, columns, scale=scale / math.sqrt(rows))

    def block():
        return {
            "query": weight(h, h),
            "key": weight(h, h),
            # Compensates for the missing softmax between two products.
            "value": weight(h, h, scale=1 / math.sqrt(t * d)),
            "attention_output": weight(h, h),
            "intermediate": weight(h, i),
            "output": weight(i, h),
        }

    if task["model"] == "albert":
        sizes = [config.inner_group_num] * config.num_hidden_groups
    else:
        sizes = [1] * config.num_hidden_layers
    operands = {
        "x": random(task, task["batch"] * t, e),
        "blocks": [[block() for _ in range(size)] for size in sizes],
        "pooler": weight(h, h),
        "sentence": weight(h, 2),
        "transform": weight(h, e),
        "table": weight(e, config.vocab_size),
    }
    if e != h:
        operands["projection"] = weight(e, h)
    return operands


def forward(operands, task, config):
    """Computes the forward products, sentence logits [B, 2] and word logits [B * P, V]."""
    import tensorflow as tf

    b, t, p = task["batch"], task["length"], task["predictions"]
    h, n = config.hidden_size, config.num_attention_heads

    def run_block(weights, queries, x):
        """Computes a block's products: [B * Q, H] and [B * T, H] -> [B * Q, H]."""
        inputs = {"query": queries, "key": x, "value": x}
        query, key, value = (
            tf.reshape(y @ weights[name], (b, n, -1, h // n))  # [B, N, Q or T, D]
            for name, y in inputs.items()
        )
        scores = tf.matmul(query, key, transpose_b=True)  # [B, N, Q, T]
        context = tf.reshape(tf.matmul(scores, value), queries.shape)  # [B * Q, H]
        return context @ weights["attention_output"] @ weights["intermediate"] @ weights["output"]

    x = operands["x"]  # [B * T, E]
    if "projection" in operands:
        x = x @ operands["projection"]  # [B * T, H]
    layers, groups = config.num_hidden_layers, operands["blocks"]
    blocks = [block for i in range(layers) for block in groups[i * len(groups) // layers]]
    for block in blocks[:-1]:
        x = run_block(block, x, x)  # [B * T, H]
    read = tf.reshape(x, (b, t, h))[:, : 1 + p]  # [B, 1 + P, H]: [CLS], then the masked positions
    x = run_block(blocks[-1], tf.reshape(read, (-1, h)), x)  # [B * (1 + P), H]
    x = tf.reshape(x, (b, 1 + p, h))  # [B, 1 + P, H]
    sentence = x[:, 0] @ operands["pooler"] @ operands["sentence"]  # [B, 2]
    words = tf.reshape(x[:, 1:], (-1, h)) @ operands["transform"] @ operands["table"]  # [B * P, V]
    return sentence, words


def matrix(task):
    """Prepares one product of square matrices for timing; a task may have "size", their side."""
    import tensorflow as tf

    dtype = tf.as_dtype(task["precision"])
    size = task.get("size", MATRIX)
    a, b = (tf.cast(tf.random.normal((size, size)), dtype) for _ in range(2))
    product = tf.function(lambda a, b: a @ b)
    return timed(lambda: product(a, b), lambda result: float(result[0, 0]))
