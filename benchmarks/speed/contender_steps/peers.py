"""Defines the training steps of the peers, KerasHub and transformers."""

import time

from benchmarks.speed.contender_steps.shared import CLIP, DECAY, RATE, policy, task_config, timed
from bert_common.cpu import available_cores


def kerashub(task):
    """Prepares KerasHub's backbone with masked-LM and sentence heads for timing, using `fit`."""
    import keras
    import tensorflow as tf

    config, batch = task_config(task)
    model = kerashub_model(task, config)
    inputs = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
        "mask_positions": batch["masked_lm_positions"],
    }
    labels = {"words": batch["masked_lm_ids"], "sentence": batch["next_sentence_labels"]}
    dataset = tf.data.Dataset.from_tensors((inputs, labels)).repeat().prefetch(2)

    class Clock(keras.callbacks.Callback):
        """Records the end times of the steps."""

        def on_train_begin(self, logs=None):
            self.times = []

        def on_train_batch_end(self, batch, logs=None):
            self.times.append(time.perf_counter())

    clock = Clock()

    def run(steps):
        # One extra step that is not timed, to exclude the cost of starting `fit`.
        model.fit(dataset, steps_per_epoch=steps + 1, verbose=0, callbacks=[clock])
        return (clock.times[-1] - clock.times[0]) / steps

    return run


def kerashub_model(task, config):
    """Builds and compiles KerasHub's model with its optimizer."""
    import keras
    import keras_hub

    keras.config.set_dtype_policy(policy(task))
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
    # Both heads share one encoder; the masked-LM head's layer reads the backbone's output.
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
    return model


def transformers(task):
    """Prepares transformers' model, eager, with torch's AdamW and autocast for bfloat16."""
    import numpy as np
    import torch
    from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForPreTraining

    torch.set_num_threads(available_cores())  # as TensorFlow does
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _, batch = task_config(task)
    # Google's gelu, in the form that torch computes fastest.
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

    words = np.full(batch["input_ids"].shape, -100)  # the loss ignores -100
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
