"""transformers on CPU torch loads every exported head: no key missing or left over, same outputs.

Shapes: B batch, T tokens, C options.
"""

import importlib.util
import json

import numpy as np
import pytest
from model_folders import write_folder

from model_formats.huggingface.export import export
from model_formats.load_folder import load_folder

LIBRARIES = ("torch", "transformers", "safetensors")
ABSENT = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"needs {', '.join(ABSENT)} (extra bench)"),
]

TOLERANCE = 1e-5
ERF = {"hidden_act": "gelu_erf"}
GROUPS = {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}

# (model type, task) -> the class, and its outputs -> ours.
HEADS = {
    "pretraining": ("ForPreTraining", ("prediction_logits", "masked_lm_logits")),
    "classification": ("ForSequenceClassification", ("logits", "logits")),
    "ner": ("ForTokenClassification", ("logits", "logits")),
    "question_answering": ("ForQuestionAnswering", ("start_logits", "start_logits")),
    "multiple_choice": ("ForMultipleChoice", ("logits", "logits")),
}
SECOND = {
    "ForPreTraining": {
        "bert": ("seq_relationship_logits", "next_sentence_logits"),
        "albert": ("sop_logits", "next_sentence_logits"),
    },
    "ForQuestionAnswering": dict.fromkeys(("bert", "albert"), ("end_logits", "end_logits")),
}


def batch(shape=(4, 16), seed=0):
    """Rows of different lengths with two segments; padding is [PAD]."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shape[-1] // 2, shape[-1] + 1, shape[:-1])
    mask = (np.arange(shape[-1]) < lengths[..., None]).astype(np.int32)
    ids = rng.integers(1, 60, shape).astype(np.int32) * mask
    segments = (np.arange(shape[-1]) >= shape[-1] // 3).astype(np.int32) * mask
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments}


def theirs(folder, name, inputs):
    """The outputs of a class of transformers, loaded strictly, as arrays by name."""
    import torch
    import transformers

    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    names = {"input_ids": "input_ids", "input_mask": "attention_mask"}
    names["segment_ids"] = "token_type_ids"
    with torch.no_grad():
        arrays = {names[key]: torch.tensor(value.astype(np.int64)) for key, value in inputs.items()}
        outputs = model.eval()(**arrays)
    return {key: value.numpy() for key, value in outputs.items()}


def exported(folder, output, **options):
    """Loads the folder, exports it; returns the loaded model and the written configuration."""
    output.mkdir()
    loaded = load_folder(str(folder))
    export(loaded, str(output), **options)
    return loaded, json.loads((output / "config.json").read_text())


def assert_close(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape and np.abs(expected).max() > 0.05
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("task", HEADS)
@pytest.mark.parametrize("kind, sizes", [
    ("bert", None), ("bert", ERF), ("bert", {"layer_norm_eps": 1e-5, "hidden_act": "relu"}),
    ("albert", None), ("albert", ERF), ("albert", GROUPS), ("albert", {"embedding_size": 32}),
])  # fmt: skip
def test_every_head(kind, sizes, task, tmp_path):
    write_folder(tmp_path / "in", kind, task, sizes)
    loaded, config = exported(tmp_path / "in", tmp_path / "out")
    suffix, pair = HEADS[task]
    name = {"bert": "Bert", "albert": "Albert"}[kind] + suffix
    assert config["architectures"] == [name]
    inputs = batch((3, 4, 16)) if task == "multiple_choice" else batch()
    found = theirs(tmp_path / "out", name, inputs)
    positions = np.tile(np.arange(16, dtype=np.int32), (4, 1))  # [B, T], every one
    ours = loaded.model({**inputs, "masked_lm_positions": positions})
    for their_name, our_name in (pair, SECOND.get(suffix, {}).get(kind, pair)):
        assert_close(found[their_name], ours[our_name])


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_without_the_sentence_head(kind, tmp_path):
    """Masked words alone; without that head too, the encoder."""
    model = write_folder(tmp_path / "in", kind)
    inputs = batch()
    for prefix, suffix in (("cls/seq", "ForMaskedLM"), ("cls/", "Model")):
        drop(tmp_path / "in" / "model.ckpt-3", prefix)
        loaded, config = exported(tmp_path / "in", tmp_path / suffix)
        (name,) = config["architectures"]
        assert name.endswith(suffix)
        found = theirs(tmp_path / suffix, name, inputs)
        if suffix == "ForMaskedLM":
            positions = np.tile(np.arange(16, dtype=np.int32), (4, 1))  # [B, T]
            ours = model({**inputs, "masked_lm_positions": positions})["masked_lm_logits"]
            assert_close(found["logits"], ours)
        else:
            ours = model.encoder(inputs)
            assert_close(found["last_hidden_state"], ours["sequence_output"])
            assert_close(found["pooler_output"], ours["pooled_output"])


def drop(prefix, start):
    """Removes the variables whose names begin so from a checkpoint."""
    from bert_tf.checkpoint import google_arrays, write_arrays

    arrays = google_arrays(str(prefix))
    kept = {n: arrays.read(n) for n in arrays.shapes if not n.startswith(start)}
    write_arrays(str(prefix), kept)


def test_kinds_of_classification(tmp_path):
    """transformers computes the loss that each kind is trained with."""
    import torch
    import transformers

    kinds = {
        "regression": ({"task_name": "klue-sts", "labels": None}, [[2.5], [0.1], [4.0], [1.0]]),
        "multi_label_classification": ({"task_type": "multi_label"}, [[1.0, 0.0, 1.0]] * 4),
        "single_label_classification": ({}, [0, 1, 2, 1]),
    }
    inputs = batch()
    for kind, (settings, labels) in kinds.items():
        write_folder(tmp_path / kind, "bert", "classification", **settings)
        loaded, config = exported(tmp_path / kind, tmp_path / f"{kind}-out")
        assert config["problem_type"] == kind
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            tmp_path / f"{kind}-out"
        ).eval()
        with torch.no_grad():
            found = model(
                input_ids=torch.tensor(inputs["input_ids"].astype(np.int64)),
                attention_mask=torch.tensor(inputs["input_mask"]),
                token_type_ids=torch.tensor(inputs["segment_ids"].astype(np.int64)),
                labels=torch.tensor(labels),
            )
        values = np.array(labels, np.float32 if kind == "regression" else np.int32)
        outputs = loaded.model(inputs)
        ours = loaded.model.losses(outputs, {"label_ids": values.squeeze()})
        assert_close(found["loss"].numpy(), np.mean(ours))
        assert list(model.config.id2label.values()) == (list(loaded.labels) or ["score"])


def test_shards(tmp_path):
    write_folder(tmp_path / "in")
    loaded, _ = exported(tmp_path / "in", tmp_path / "out", max_shard_size="20KB")
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 2
    inputs = batch()
    found = theirs(tmp_path / "out", "BertForPreTraining", inputs)
    ours = loaded.model({**inputs, "masked_lm_positions": np.zeros((4, 1), np.int32)})
    assert_close(found["seq_relationship_logits"], ours["next_sentence_logits"])
