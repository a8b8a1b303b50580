"""Folders as others wrote them: labels by number, odd vocabularies, odd sizes, other names."""

import json
import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file
from transformers_models import FOLDERS

from bert_common.errors import InputError
from bert_tf.checkpoint import load_arrays, load_google_checkpoint, write_arrays
from bert_tf.pretraining import PretrainingModel
from electra_tf import ElectraModel
from finetuning.ner.data import FORMATS, read_tagged
from korean_bert import load_model
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import OBJECTIVES
from model_formats.weights import open_weights
from tests.support.models.model_folders import change_json, write_folder, write_model
from tests.support.tiny_models import weights_of

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
H = 32  # of the kept folders
CLASSIFIER = {"architectures": ["BertForSequenceClassification"]}


def encoder_of(name):
    """The encoder's weights of a kept folder."""
    weights = load_file(FOLDERS / name / "model.safetensors")
    return {n: array for n, array in weights.items() if n.startswith(("bert.", "electra."))}


def write(
    folder,
    tokens=(*SPECIALS, "가", "나", "##다"),
    head=None,
    kept="bert_erf",
    weights=None,
    **config,
):
    """A kept folder's encoder, or other weights, with a smaller vocabulary and a random head."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    made = {name: rng.normal(0, 0.3, shape) for name, shape in (head or {}).items()}
    weights = {**(weights or encoder_of(kept)), **made}
    sizes = {"word_embeddings": len(tokens), "token_type_embeddings": config.get("type_vocab_size")}
    for name, array in weights.items():
        size = next((size for part, size in sizes.items() if part in name), None)
        weights[name] = array[:size].astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(FOLDERS / kept / "config.json", folder)
    change_json(folder / "config.json", **{"vocab_size": len(tokens), **config})
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    return folder


def head_of(classes):
    return {"classifier.weight": (classes, H), "classifier.bias": (classes,)}


def test_one_token_type_stands_for_both_segments(tmp_path):
    name = "bert.embeddings.token_type_embeddings.weight"
    weights = encoder_of("bert_erf")
    weights[name] = np.repeat(weights[name][:1], 2, axis=0)
    first = load_model(write(tmp_path / "one", type_vocab_size=1))
    second = load_model(write(tmp_path / "two", weights=weights))
    for texts in ("가 나다", [("가", "나다 가")]):
        np.testing.assert_array_equal(first.embed(texts), second.embed(texts))
    # Narrow embeddings make an ELECTRA ALBERT's network.
    electra = {"kept": "electra_small", "architectures": ["ElectraModel"]}
    folder = write(tmp_path / "electra", **electra, type_vocab_size=1)
    assert load_model(folder).embed([("가", "나")]).shape == (1, H)


def test_an_electra_whose_sequence_head_is_not_linear_gives_its_encoder(tmp_path):
    """As other heads do where training starts; what needs the head refuses it."""
    shapes = {"dense.weight": (H, H), "dense.bias": (H,), "out_proj.weight": (2, H)}
    head = {f"classifier.{n}": shape for n, shape in {**shapes, "out_proj.bias": (2,)}.items()}
    config = {"architectures": ["ElectraForSequenceClassification"]}
    folder = write(tmp_path / "m", head=head, kept="electra_small", **config)
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
    model = load_model(write(tmp_path, head=head_of(count), **CLASSIFIER, num_labels=count))
    assert model.loaded.labels == tuple(f"LABEL_{i}" for i in range(count))
    assert set(model.predict("가").probabilities) == set(model.loaded.labels)


@pytest.mark.parametrize("count", (0, -1, "3", 1.5, True, 10**9))
def test_an_odd_number_of_labels(tmp_path, count):
    folder = write(tmp_path, head=head_of(2), **CLASSIFIER, num_labels=count)
    with pytest.raises(InputError, match="num_labels must be a whole number from 1 to 10000"):
        load_model(folder)


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


def write_pooling(folder, *more, inner="", **modes):
    """What sentence-transformers keeps beside a model: more modules, and the modes of pooling."""
    paths = {"Transformer": inner, "Pooling": "1_Pooling", **{name: name for name in more}}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(paths.items())
    ]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    modes = {"word_embedding_dimension": H, "pooling_mode_cls_token": False, **modes}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    return folder


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
    model = load_model(write_pooling(write(tmp_path), **modes))
    assert model.pooling == expected
    vectors = {pooling: model.embed("가 나", pooling) for pooling in ("cls", "mean", "max")}
    for pooling, vector in vectors.items():
        assert np.array_equal(model.embed("가 나"), vector) == (pooling == expected)
    model = load_model(write_pooling(tmp_path, "Normalize", **modes))
    length_1 = vectors[expected] / np.linalg.norm(vectors[expected])
    np.testing.assert_allclose(model.embed("가 나"), length_1, rtol=1e-6)


@pytest.mark.parametrize(
    "more, modes, message",
    (
        ([], {}, "must choose one pooling of cls, mean, max; otherwise "),
        ([], {"pooling_mode_weightedmean_tokens": True}, "must choose one pooling"),
        ([], {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, "choose one"),
        ([], {"pooling_mode": "lasttoken"}, "must choose one pooling"),
        (["Dense"], {"pooling_mode_mean_tokens": True}, "must list no modules but .* Dense"),
    ),
)
def test_what_is_not_computed_is_refused(tmp_path, more, modes, message):
    model = load_model(
        write_pooling(write(tmp_path), *more, **modes)
    )  # what needs no vectors works
    with pytest.raises(InputError, match=message):
        model.embed("가 나")
    assert model.embed("가 나", "mean").shape == (H,)


def test_the_modules_beside_a_model_are_its_own_or_not_read(tmp_path):
    write_pooling(write(tmp_path / "m"), pooling_mode_cls_token=True)
    assert load_model(write(tmp_path / "m" / "finetuned")).pooling == "mean"
    write_pooling(tmp_path / "m", inner="0_Transformer", pooling_mode_cls_token=True)
    assert load_model(write(tmp_path / "m" / "0_Transformer")).pooling == "cls"


def test_lower_case_that_the_tokenizer_makes_too(tmp_path):
    folder = write_pooling(write(tmp_path), pooling_mode_cls_token=True)
    for name in ("sentence_bert_config.json", "tokenizer_config.json"):
        (folder / name).write_text('{"do_lower_case": true}')
    assert load_model(folder).pooling == "cls"


@pytest.mark.parametrize("old, new", (("", "module."), ("", "model.a."), ("bert.", "koelectra.")))
def test_weights_of_transformers_inside_another_model(tmp_path, old, new):
    """As PyTorch's DataParallel names them."""
    folder = write(tmp_path / "one", head=head_of(2), **CLASSIFIER)
    wanted = load_model(folder).predict("가 나다")
    renamed = {
        new + name.removeprefix(old) if name.startswith(old) else name: value
        for name, value in load_file(folder / "model.safetensors").items()
    }
    folder = write(tmp_path / "two", weights=renamed, **CLASSIFIER)
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
    with pytest.raises(InputError, match=rf"finetuning.json(: the setting| must hold) {name}"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "task, name",
    (("ner", "labels"), ("question_answering", "doc_stride"), ("multiple_choice", "task_name")),
)
def test_settings_that_are_missing(tmp_path, task, name):
    write_folder(tmp_path, task=task)
    path = tmp_path / "finetuning.json"
    settings = json.loads(path.read_text())
    del settings[name]
    path.write_text(json.dumps(settings))
    with pytest.raises(InputError, match="finetuning.json must hold "):
        load_model(tmp_path)


# === Names with another prefix, none, or a word that no model here has ===


@pytest.mark.parametrize(
    "kind, change, found",
    (
        *(  # inside another model
            (kind, lambda name, prefix=prefix: f"{prefix}{name}", f"{prefix}bert/")
            for kind in ("bert", "albert")
            for prefix in ("module/", "model/encoder_1/")
        ),
        ("bert", lambda name: name.replace("bert/", "koelectra/"), "koelectra/"),
        # Beside an encoder without a name are heads, moments and the step, which have none either.
        ("bert", lambda name: name.removeprefix("bert/"), ""),
    ),
)
def test_an_encoder_under_another_name(tmp_path, kind, change, found):
    model = write_model(tmp_path / "m", kind)
    arrays = weights_of(model)
    stored = {change(name): value for name, value in arrays.items()}
    stored |= {f"{name}/adam_m": value for name, value in stored.items()}
    others = {"output_weights": np.zeros((2, 16), np.float32), "global_step": np.int64(5)}
    others["skipped_steps"] = np.int64(0)  # of a training here
    path = str(tmp_path / "model.ckpt-5")
    write_arrays(path, {**stored, **others})
    for variable in model.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    with pytest.warns(UserWarning, match=f"begin with '{found}' there, which is read as 'bert/'"):
        report = load_google_checkpoint(model, path)
        assert not load_google_checkpoint(model.encoder, path).missing
    assert len(report.loaded) == len(arrays) and not report.missing
    np.testing.assert_equal(weights_of(model), arrays)


def test_an_electra_without_a_name(tmp_path):
    """The configuration beside it says that it is none of BERT's; heads have their names."""
    model = write_model(tmp_path / "m", "electra", names=["generator/"])
    expected = load_model(tmp_path / "m").embed(["가 나다", "라"])
    arrays = weights_of(model)
    stored = {name.removeprefix("electra/"): value for name, value in arrays.items()}
    assert "generator_predictions/output_bias" in stored
    write_arrays(str(tmp_path / "m" / "model.ckpt-3"), stored)
    with pytest.warns(UserWarning, match="begin with '' there, which is read as 'electra/'"):
        loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embed(["가 나다", "라"]), expected)
    assert not loaded.loaded.missing


def test_two_models_in_one_file_are_not_mixed(tmp_path):
    """Nor if heads and the pooler may be missing, so that not every variable is needed."""
    model = write_model(tmp_path / "m")
    arrays = weights_of(model)
    path = str(tmp_path / "m" / "model.ckpt-9")
    write_arrays(path, {f"{p}/{name}": v for p in "ab" for name, v in arrays.items()})
    for load in (lambda: load_google_checkpoint(model, path), lambda: load_model(path)):
        with pytest.raises(InputError, match="Received: none of the .*, but a/bert/embeddings"):
            load()


def test_the_nearest_names_of_missing_variables(tmp_path):
    model = write_model(tmp_path / "m")
    arrays = weights_of(model)
    other = "bert/embeddings/layer_normalization/gamma"
    arrays[other] = arrays.pop("bert/embeddings/LayerNorm/gamma")
    path = str(tmp_path / "model.ckpt-1")
    write_arrays(path, arrays)
    with pytest.raises(InputError, match=f"LayerNorm/gamma: missing .the file has {other}."):
        load_google_checkpoint(model, path)
