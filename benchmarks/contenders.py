"""What the benchmarks run, each in a process of its own: this project's step, its peers', products.

    python benchmarks/contenders.py KIND JSON

is started by `common.Contender`, not by people. It prints a line of JSON when it is warm, then one
for every line "STEPS" that it reads: the seconds of a step and the peak of memory in GiB.

Every function here takes the task, a dict, and returns a function of the number of steps that
returns the seconds of one: "model", "config" (its sizes), "batch", "length", "predictions",
"precision", "xla": "auto", "on" or "off".

Shapes: B batch, T tokens, N heads, D head size, H hidden, E embedding, I intermediate,
V vocabulary, P predictions.
"""

import json
import math
import os
import sys
import time

from common import CONFIGS, random_batch

from bert_common.cores import available_cores

RATE = 1e-4
DECAY = 0.01
CLIP = 1.0
MATRIX = 2048  # large enough that the product runs at the machine's own speed
WARM_UP = 2  # steps, where the task does not say; the first compiles


def task_config(task):
    """The task's configuration and its batch, as arrays."""
    config = CONFIGS[task["model"]](**task["config"])
    return config, random_batch(config, task["batch"], task["length"], task["predictions"])


def policy(task):
    """The name of the Keras policy for the task's precision."""
    return "mixed_bfloat16" if task["precision"] == "bfloat16" else "float32"


def timed(step, wait):
    """A function that times `steps` calls of `step`; `wait` is called on what the last returns."""

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            result = step()
        wait(result)  # an accelerator computes while Python has gone on
        return (time.perf_counter() - start) / steps

    return run


def project_model(task, config):
    """This project's model and optimizer, in the strategy's scope if there is one."""
    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.optimization import OPTIMIZERS

    encoder = {"bert": BertModel, "albert": AlbertModel}[task["model"]]
    model = PretrainingModel(encoder(config, dtype=policy(task)))
    optimizer = OPTIMIZERS["adamw" if task["model"] == "bert" else "lamb"](
        WarmupPolynomialDecay(RATE, num_train_steps=1_000_000, num_warmup_steps=0),
        weight_decay_rate=DECAY,
    )
    optimizer.build(model.trainable_variables)
    return model, optimizer


def project(task):
    """This project's training step; also "recompute", and "devices": a name of `make_strategy`."""
    import numpy as np
    import tensorflow as tf

    from bert_tf.training.distribution import make_strategy
    from bert_tf.training.step import TrainingStep
    from bert_tf.training.xla import choose_compilation, enable_auto_clustering

    devices = task.get("devices", "one_device")
    if "cores" in task:  # before the first operation, which starts the threads
        tf.config.threading.set_intra_op_parallelism_threads(len(task["cores"]))
    if devices == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )
    compiled = choose_compilation(task["xla"], task["precision"])
    if compiled.auto_clustering:
        enable_auto_clustering()
    strategy = make_strategy(devices)
    config, batch = task_config(task)
    with strategy.scope():
        model, optimizer = project_model(task, config)
    step = TrainingStep(
        model,
        optimizer,
        strategy,
        xla=compiled.whole,
        xla_update=compiled.update,
        recompute=task.get("recompute", "none"),
    )

    def part(context):
        replicas, replica = context.num_replicas_in_sync, context.replica_id_in_sync_group
        return {k: tf.constant(np.array_split(v, replicas)[replica]) for k, v in batch.items()}

    data = strategy.experimental_distribute_values_from_function(part)
    return timed(lambda: step(data)["loss"], float)


def kerashub(task):
    """KerasHub's backbone and masked-LM head, a sentence head, driven by `fit`."""
    import keras
    import keras_hub
    import tensorflow as tf

    keras.config.set_dtype_policy(policy(task))
    config, batch = task_config(task)
    sizes = {
        "vocabulary_size": config.vocab_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "hidden_dim": config.hidden_size,
        "intermediate_dim": config.intermediate_size,
        "dropout": config.hidden_dropout_prob,
        "max_sequence_length": config.max_position_embeddings,
        "num_segments": config.type_vocab_size,
    }
    if task["model"] == "bert":
        backbone = keras_hub.models.BertBackbone(**sizes)
        head = keras_hub.models.BertMaskedLM(backbone)
        optimizer = keras.optimizers.AdamW(RATE, weight_decay=DECAY, global_clipnorm=CLIP)
    else:
        backbone = keras_hub.models.AlbertBackbone(
            embedding_dim=config.embedding_size,
            num_groups=config.num_hidden_groups,
            num_inner_repetitions=config.inner_group_num,
            **sizes,
        )
        head = keras_hub.models.AlbertMaskedLM(backbone)
        optimizer = keras.optimizers.Lamb(RATE, weight_decay=DECAY, global_clipnorm=CLIP)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    # One encoder under both heads: the head's own layer, on the backbone's output.
    encoded = backbone(backbone.input)
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    model = keras.Model(
        {**backbone.input, "mask_positions": positions},
        {
            "words": head.masked_lm_head(encoded["sequence_output"], positions),
            "sentence": keras.layers.Dense(2)(encoded["pooled_output"]),
        },
    )
    loss = {
        name: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        for name in ("words", "sentence")
    }
    model.compile(optimizer, loss=loss, jit_compile=task["xla"] == "on")
    inputs = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
        "mask_positions": batch["masked_lm_positions"],
    }
    labels = {"words": batch["masked_lm_ids"], "sentence": batch["next_sentence_labels"]}
    dataset = tf.data.Dataset.from_tensors((inputs, labels)).repeat().prefetch(2)

    class Clock(keras.callbacks.Callback):
        """When each step ended."""

        def on_train_begin(self, logs=None):
            self.times = []

        def on_train_batch_end(self, batch, logs=None):
            self.times.append(time.perf_counter())

    clock = Clock()

    def run(steps):
        # One more step, not timed: with it the cost of starting `fit` drops out.
        model.fit(dataset, steps_per_epoch=steps + 1, verbose=0, callbacks=[clock])
        return (clock.times[-1] - clock.times[0]) / steps

    return run


def transformers(task):
    """transformers' pre-training model, torch's AdamW, eager, autocast for bfloat16."""
    import numpy as np
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForPreTraining

    torch.set_num_threads(available_cores())  # as TensorFlow does
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _, batch = task_config(task)
    # The same function as Google's gelu, in the form that torch computes fastest.
    sizes = {**task["config"], "hidden_act": "gelu_pytorch_tanh"}
    if task["model"] == "bert":
        model, sentence = BertForPreTraining(BertConfig(**sizes)), "next_sentence_label"
    else:
        model, sentence = AlbertForPreTraining(AlbertConfig(**sizes)), "sentence_order_label"
    model.to(device).train()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, fused=True)

    words = np.full(batch["input_ids"].shape, -100)  # what the loss leaves out
    np.put_along_axis(words, batch["masked_lm_positions"], batch["masked_lm_ids"], axis=1)
    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
        "labels": words,
        sentence: batch["next_sentence_labels"][:, 0],
    }
    inputs = {name: torch.tensor(value, device=device).long() for name, value in inputs.items()}
    bfloat16 = task["precision"] == "bfloat16"

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return timed(step, float)


def products(task):
    """The matrix products of one step, forward and backward, and nothing else."""
    compute, operands, given = products_function(task)
    return timed(lambda: compute(operands, given), lambda results: float(results[0][0, 0]))


def products_function(task):
    """A function that computes the step's matrix products, with random arguments for it.

    It is the model with everything but its products left out; a product's gradient is two more.
    Heads are split by a reshape alone, which moves nothing; the positions at which the last block
    is run are the first ones. Every result is returned, so that none can be left out.
    """
    import tensorflow as tf

    c, _ = task_config(task)
    b, t, p = task["batch"], task["length"], task["predictions"]
    h, e, i, n = c.hidden_size, c.embedding_size, c.intermediate_size, c.num_attention_heads
    d = h // n
    albert = task["model"] == "albert"
    dtype = tf.as_dtype(task["precision"])

    def random(*shape, scale=1.0):
        return tf.cast(tf.random.normal(shape) * scale, dtype)

    def weight(rows, columns, scale=1.0):  # leaves the size of what it is multiplied with
        return random(rows, columns, scale=scale / math.sqrt(rows))

    def block():
        return {
            "query": weight(h, h),
            "key": weight(h, h),
            # Makes up for the two products without a softmax between them.
            "value": weight(h, h, scale=1 / math.sqrt(t * d)),
            "attention_output": weight(h, h),
            "intermediate": weight(h, i),
            "output": weight(i, h),
        }

    if albert:
        groups = [[block() for _ in range(c.inner_group_num)] for _ in range(c.num_hidden_groups)]
    else:
        groups = [[block()] for _ in range(c.num_hidden_layers)]
    operands = {
        "x": random(b * t, e),
        "blocks": groups,
        "pooler": weight(h, h),
        "sentence": weight(h, 2),
        "transform": weight(h, e),
        "table": weight(e, c.vocab_size),
    }
    if albert and e != h:
        operands["projection"] = weight(e, h)

    def run(w, queries, x):
        """A block: [B * Q, H] and [B * T, H] -> [B * Q, H]."""
        inputs = {"query": queries, "key": x, "value": x}
        query, key, value = (tf.reshape(y @ w[name], (b, n, -1, d)) for name, y in inputs.items())
        scores = tf.matmul(query, key, transpose_b=True)  # [B, N, Q, T]
        context = tf.reshape(tf.matmul(scores, value), queries.shape)  # [B * Q, H]
        return context @ w["attention_output"] @ w["intermediate"] @ w["output"]

    def forward(o):
        x = o["x"]  # [B * T, E]
        if "projection" in o:
            x = x @ o["projection"]  # [B * T, H]
        layers = c.num_hidden_layers
        blocks = [w for i in range(layers) for w in o["blocks"][i * len(groups) // layers]]
        for w in blocks[:-1]:
            x = run(w, x, x)  # [B * T, H]
        at = tf.reshape(x, (b, t, h))[:, : 1 + p]  # [CLS], then the masked positions
        x = run(blocks[-1], tf.reshape(at, (-1, h)), x)  # [B * (1 + P), H]
        x = tf.reshape(x, (b, 1 + p, h))  # [B, 1 + P, H]
        sentence = x[:, 0] @ o["pooler"] @ o["sentence"]  # [B, 2]
        words = tf.reshape(x[:, 1:], (-1, h)) @ o["transform"] @ o["table"]  # [B * P, V]
        return sentence, words

    given = (random(b, 2), random(b * p, c.vocab_size))  # outputs' gradients

    @tf.function(jit_compile=task["xla"] != "off")
    def compute(operands, given):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            outputs = forward(operands)
        gradients = tape.gradient(outputs, operands, output_gradients=given)
        return tf.nest.flatten((outputs, gradients))

    return compute, operands, given


def update(task):
    """Clipping and the optimizer's update alone, by this project's own code, in one function."""
    import tensorflow as tf

    from bert_tf.optimization import clip_factor

    config, _ = task_config(task)
    model, optimizer = project_model(task, config)
    weights = model.trainable_variables
    gradients = [tf.random.normal(v.shape) for v in weights]

    @tf.function(jit_compile=task["xla"] != "off")
    def step(gradients):
        norm = tf.linalg.global_norm(gradients)
        factor = clip_factor(norm)
        rate = tf.convert_to_tensor(optimizer.learning_rate)
        for gradient, variable in zip(gradients, weights, strict=True):
            optimizer.update_step(gradient * factor, variable, rate)
        optimizer.iterations.assign_add(1)
        return norm

    return timed(lambda: step(gradients), float)


def matrix(task):
    """One bare product of two square matrices."""
    import tensorflow as tf

    dtype = tf.as_dtype(task["precision"])
    a, b = (tf.cast(tf.random.normal((MATRIX, MATRIX)), dtype) for _ in range(2))
    product = tf.function(lambda a, b: a @ b)
    return timed(lambda: product(a, b), lambda result: float(result[0, 0]))


KINDS = {
    function.__name__: function
    for function in (project, kerashub, transformers, products, update, matrix)
}


def peak_memory():
    """The peak in GiB: of the GPU's memory if one is used, else of the process."""
    tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
    if torch and torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    if tf and tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**30
    # Not getrusage: that begins with the peak of the process that started this one.
    with open("/proc/self/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmHWM"].split()[0]) / 2**20


def main():
    """Answers "STEPS" by JSON until the input ends."""
    kind, task = sys.argv[1], json.loads(sys.argv[2])
    # Libraries print: what they print must not come among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if "cores" in task:
        os.sched_setaffinity(0, task["cores"])
    run = KINDS[kind](task)
    run(task.get("warm_up", WARM_UP))
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        answer = {"seconds": run(int(line)), "memory": peak_memory()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
