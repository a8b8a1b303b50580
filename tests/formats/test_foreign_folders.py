"""Folders as others wrote them: labels by number, other tags, odd vocabularies, odd sizes."""

import json
import warnings

import numpy as np
import pytest
from safetensors.numpy import save_file

from bert_common.errors import InputError
from bert_tf.checkpoint import (
    load_arrays,
)
from bert_tf.pretraining import PretrainingModel
from electra_tf import ElectraModel
from finetuning.ner.data import FORMATS, read_tagged
from korean_bert import load_model
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import OBJECTIVES
from model_formats.weights import open_weights
from tests.support.models.model_folders import change_json, write_folder

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
H, INNER, P = 16, 32, 64


def bert_weights(vocabulary, types=2, width=H):
    """A BERT of one layer by transformers' names, with random weights."""
    rng = np.random.default_rng(0)

    def array(*shape):
        return rng.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "bert.embeddings.word_embeddings.weight": array(vocabulary, width),
        "bert.embeddings.position_embeddings.weight": array(P, width),
        "bert.embeddings.token_type_embeddings.weight": array(types, width),
        "bert.pooler.dense.weight": array(H, H),
        "bert.pooler.dense.bias": array(H),
    }
    layer = "bert.encoder.layer.0."
    for name in ("bert.embeddings.", f"{layer}attention.output.", f"{layer}output."):
        size = width if name == "bert.embeddings." else H
        weights[f"{name}LayerNorm.weight"] = np.ones(size, np.float32)
        weights[f"{name}LayerNorm.bias"] = array(size)
    for name, rows, columns in (
        ("attention.self.query", H, H), ("attention.self.key", H, H),
        ("attention.self.value", H, H), ("attention.output.dense", H, H),
        ("intermediate.dense", INNER, H), ("output.dense", H, INNER),
    ):  # fmt: skip
        weights[f"{layer}{name}.weight"] = array(rows, columns)
        weights[f"{layer}{name}.bias"] = array(rows)
    return weights


def write(folder, tokens=(*SPECIALS, "가", "나", "##다"), head=None, weights=None, **config):
    folder.mkdir(exist_ok=True)
    weights = dict(weights or bert_weights(len(tokens), config.get("type_vocab_size", 2)))
    rng = np.random.default_rng(1)
    for name, shape in (head or {}).items():
        weights[name] = rng.normal(0, 0.3, shape).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    values = {
        "model_type": "bert", "architectures": ["BertModel"], "vocab_size": len(tokens),
        "hidden_size": H, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": INNER,
        "max_position_embeddings": P, "type_vocab_size": 2, "hidden_act": "gelu",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps({**values, **config}), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    return folder


def head_of(classes):
    return {"classifier.weight": (classes, H), "classifier.bias": (classes,)}


def test_one_token_type_stands_for_both_segments(tmp_path):
    one = bert_weights(8, types=1)
    name = "bert.embeddings.token_type_embeddings.weight"
    two = {**one, name: np.repeat(one[name], 2, axis=0)}
    first = load_model(write(tmp_path / "one", weights=one, type_vocab_size=1))
    second = load_model(write(tmp_path / "two", weights=two))
    for texts in ("가 나다", [("가", "나다 가")]):
        np.testing.assert_array_equal(first.embed(texts), second.embed(texts))


def test_one_token_type_of_electra_and_albert(tmp_path):
    """Narrow embeddings make an ELECTRA ALBERT's network."""
    weights = {
        name.replace("bert.", "electra.", 1): value
        for name, value in bert_weights(8, types=1, width=8).items()
        if "pooler" not in name
    }
    weights["electra.embeddings_project.weight"] = np.ones((H, 8), np.float32)
    weights["electra.embeddings_project.bias"] = np.zeros(H, np.float32)
    sizes = {"embedding_size": 8, "type_vocab_size": 1, "architectures": ["ElectraModel"]}
    folder = write(tmp_path / "electra", weights=weights, model_type="electra", **sizes)
    assert load_model(folder).embed([("가", "나")]).shape == (1, H)


def test_an_electra_whose_sequence_head_is_not_linear_gives_its_encoder(tmp_path):
    """As other heads do where training starts; what needs the head refuses it."""
    weights = {
        name.replace("bert.", "electra.", 1): value
        for name, value in bert_weights(8).items()
        if "pooler" not in name
    }
    head = {"dense.weight": (H, H), "dense.bias": (H,), "out_proj.weight": (2, H)}
    head = {f"classifier.{name}": shape for name, shape in head.items()}
    head["classifier.out_proj.bias"] = (2,)
    config = {"model_type": "electra", "architectures": ["ElectraForSequenceClassification"]}
    folder = write(tmp_path / "m", head=head, weights=weights, embedding_size=H, **config)
    encoder = ElectraModel(ModelFolder(str(folder)).config)
    report = load_arrays(encoder, open_weights(str(folder)))
    assert set(report.ignored) == set(head)
    words = OBJECTIVES["mlm"].make_model(encoder, None)
    with pytest.raises(InputError, match="--allow_missing=cls/ begins new heads.* missing$"):
        load_arrays(words, open_weights(str(folder)))
    with pytest.raises(InputError, match="output_weights: missing; .*classifier.dense.weight"):
        load_model(folder)
    # A pre-training, which begins its own heads, shows what it lacks alone.
    with pytest.raises(InputError, match=r"allow_missing=cls/ begins .*LayerNorm/beta: missing$"):
        load_arrays(PretrainingModel(encoder), open_weights(str(folder)))


@pytest.mark.parametrize("count", (2, 3))
def test_the_number_of_labels_alone(tmp_path, count):
    config = {"architectures": ["BertForSequenceClassification"], "num_labels": count}
    model = load_model(write(tmp_path / "m", head=head_of(count), **config))
    assert model.loaded.labels == tuple(f"LABEL_{i}" for i in range(count))
    assert set(model.predict("가").probabilities) == set(model.loaded.labels)


@pytest.mark.parametrize("count", (0, -1, "3", 1.5, True, 10**9))
def test_an_odd_number_of_labels(tmp_path, count):
    config = {"architectures": ["BertForSequenceClassification"], "num_labels": count}
    with pytest.raises(InputError, match="num_labels must be a whole number from 1 to 10000"):
        load_model(write(tmp_path / "m", head=head_of(2), **config))


@pytest.mark.parametrize("form", ("{kind}-{place}", "{kind}_{place}", "{place}-{kind}"))
def test_tags_that_end_with_their_place(tmp_path, form):
    tags = [form.format(kind=kind, place=place) for kind in ("PER", "LOC") for place in "BI"]
    labels = dict(enumerate(["O", *tags]))
    config = {"architectures": ["BertForTokenClassification"], "id2label": labels}
    model = load_model(write(tmp_path / "m", head=head_of(5), **config))
    assert model.loaded.labels == ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    assert {tag for tag in model.predict("가 나다").tags} <= set(model.loaded.labels)


def test_tags_of_a_file_that_end_with_their_place(tmp_path):
    lines = ["서울\tLOC-B", "시\tLOC-I", "는\tO", "", "가\tB-PER", "나\tPER_B", "다\t-"]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sentences, loose = read_tagged(FORMATS["conll"], "train", str(tmp_path))
    assert [each.tags for each in sentences] == [("B-LOC", "I-LOC", "O"), ("B-PER", "B-PER", "O")]
    assert loose == 0


def test_a_vocabulary_with_a_token_of_white_space(tmp_path):
    """As bert-base-chinese's own; no text can be cut into it."""
    tokens = [*SPECIALS, "가", "\u2028", "나", "##다"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load_model(write(tmp_path / "m", tokens))
    assert model.tokenizer.encode("가 나다") == [5, 7, 8]
    assert model.hidden_states("가\u2028나").pieces == ("[CLS]", "가", "나", "[SEP]")


POOLING = {"word_embedding_dimension": H, "pooling_mode_cls_token": False}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


def write_pooling(folder, modules=MODULES, **modes):
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({**POOLING, **modes}))


@pytest.mark.parametrize(
    "modes, expected",
    (
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "cls"),
    ),
)
def test_the_pooling_of_sentence_transformers(tmp_path, modes, expected):
    folder = write(tmp_path / "m")
    write_pooling(folder, **modes)
    model = load_model(folder)
    assert model.pooling == expected
    np.testing.assert_array_equal(model.embed("가 나"), model.embed("가 나", expected))
    others = {"cls", "mean", "max"} - {expected}
    assert all(np.abs(model.embed("가 나") - model.embed("가 나", o)).max() > 1e-3 for o in others)


@pytest.mark.parametrize(
    "modes",
    (
        {},
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
        {"pooling_mode": "lasttoken"},
    ),
)
def test_other_poolings_of_sentence_transformers(tmp_path, modes):
    write_pooling(write(tmp_path / "m"), **modes)
    model = load_model(tmp_path / "m")  # what needs no vectors works
    with pytest.raises(InputError, match="must choose one pooling of cls, mean, max; otherwise "):
        model.embed("가 나")
    assert model.embed("가 나", "mean").shape == (H,)


def test_the_modules_beside_a_model_are_its_own_or_not_read(tmp_path):
    write_pooling(write(tmp_path / "m"), pooling_mode_cls_token=True)
    assert load_model(write(tmp_path / "m" / "finetuned")).pooling == "mean"
    inner = [{**MODULES[0], "path": "0_Transformer"}, MODULES[1]]
    write_pooling(tmp_path / "m", inner, pooling_mode_cls_token=True)
    assert load_model(write(tmp_path / "m" / "0_Transformer")).pooling == "cls"


def test_modules_that_are_not_computed_are_refused(tmp_path):
    more = {"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.models.Dense"}
    folder = write(tmp_path / "m")
    write_pooling(folder, [*MODULES, more], pooling_mode_mean_tokens=True)
    model = load_model(folder)  # what needs no vectors works
    with pytest.raises(InputError, match="modules.json must list no modules but .* Dense"):
        model.embed("가 나")
    assert model.embed("가 나", "mean").shape == (H,)


def test_lower_case_that_the_tokenizer_makes_too(tmp_path):
    folder = write(tmp_path / "m")
    write_pooling(folder, pooling_mode_cls_token=True)
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert load_model(folder).pooling == "cls"


def test_vectors_of_length_1(tmp_path):
    more = {"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.models.Normalize"}
    folder = write(tmp_path / "m")
    write_pooling(folder, [*MODULES, more], pooling_mode_mean_tokens=True)
    model = load_model(folder)
    scaled = model.embed("가 나", "mean") / np.linalg.norm(model.embed("가 나", "mean"))
    np.testing.assert_allclose(model.embed("가 나"), scaled, rtol=1e-6)


@pytest.mark.parametrize("old, new", (("", "module."), ("", "model.a."), ("bert.", "koelectra.")))
def test_weights_of_transformers_inside_another_model(tmp_path, old, new):
    """As PyTorch's DataParallel names them."""
    weights = {**bert_weights(8), "classifier.weight": np.ones((2, H), np.float32)}
    weights["classifier.bias"] = np.zeros(2, np.float32)
    config = {"architectures": ["BertForSequenceClassification"]}
    wanted = load_model(write(tmp_path / "one", weights=weights, **config)).predict("가 나다")
    renamed = {
        new + name.removeprefix(old) if name.startswith(old) else name: value
        for name, value in weights.items()
    }
    folder = write(tmp_path / "two", weights=renamed, **config)
    with pytest.warns(UserWarning, match=f"names begin with '{new}' there, which is left out"):
        assert load_model(folder).predict("가 나다") == wanted


@pytest.mark.parametrize(
    "kind, name, value, message",
    (
        ("bert", "num_hidden_layers", 10**9, "num_hidden_layers must be at most 1000. Received"),
        # Layers that share their weights, of which files say nothing.
        ("albert", "num_hidden_layers", 10**9, "num_hidden_layers must be at most 1000. Received"),
        ("bert", "num_hidden_layers", 3, "must fit the model.*/layer_2/.*: missing"),
        ("albert", "intermediate_size", 96, "must fit the model.*: the model has .*96"),
        ("electra", "vocab_size", 40, "must fit the model.*: the model has .*40"),
    ),
)
def test_sizes_that_are_not_the_files(tmp_path, kind, name, value, message):
    write_folder(tmp_path, kind)
    change_json(tmp_path / f"{kind}_config.json", **{name: value})
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


ODD_SETTINGS = [
    *(("classification", "max_seq_length", n) for n in (-5, 0, 2, "128", 1.5, True, [], 10**30)),
    ("classification", "labels", 3),
    ("classification", "task_name", None),
    ("classification", "feature_layers", 3),
    ("classification", "task_type", ["x"]),
    ("question_answering", "doc_stride", True),  # which may be 1
]


@pytest.mark.parametrize("task, name, value", ODD_SETTINGS)
def test_odd_settings_of_a_fine_tuned_folder(tmp_path, task, name, value):
    write_folder(tmp_path, task=task)
    change_json(tmp_path / "finetuning.json", **{name: value})
    match = rf"finetuning.json(: the setting| must hold) {name}"
    with pytest.raises(InputError, match=match):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "task, name",
    (("ner", "labels"), ("question_answering", "doc_stride"), ("multiple_choice", "task_name")),
)
def test_settings_that_are_missing(tmp_path, task, name):
    write_folder(tmp_path, task=task)
    path = tmp_path / "finetuning.json"
    settings = json.loads(path.read_text())
    assert load_model(tmp_path).loaded.task == task
    path.write_text(json.dumps({k: v for k, v in settings.items() if k != name}))
    with pytest.raises(InputError, match="finetuning.json must hold "):
        load_model(tmp_path)
