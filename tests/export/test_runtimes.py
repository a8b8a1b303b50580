"""Files of ONNX Runtime or LiteRT compute what the model computes."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.config import ACTIVATION_NAMES
from model_formats.load_folder import load_folder
from model_formats.runtimes import check, litert_model, onnx_model
from model_formats.runtimes.check import check_file, largest_differences, sample_inputs
from model_formats.runtimes.description import describe
from model_formats.runtimes.ids_graph import input_names, make_graph
from run_scripts.conversion import export_model
from tests.support.crosses import quick_by_pairs
from tests.support.models.model_folders import VALUES, write_folder

FORMATS = {"onnx": onnx_model, "litert": litert_model}
DTYPES = {"onnx": "int64", "litert": "int32"}

# Every head: its task, what its folder records, its outputs.
HEADS = {
    "pretraining": (
        "pretraining", {},
        ["masked_lm_logits", "next_sentence_logits", "pooled_output", "sequence_output"],
    ),
    "classification": ("classification", {}, ["logits"]),
    "layers": ("classification", {"feature_layers": "0,-1"}, ["logits"]),
    "ner": ("ner", {}, ["logits"]),
    "spans": ("question_answering", {"start_n_top": 0}, ["end_logits", "start_logits"]),
    "beam": (
        "question_answering", {"start_n_top": 3, "end_n_top": 2},
        ["cls_logits", "end_top_index", "end_top_log_probs", "start_top_index",
         "start_top_log_probs"],
    ),
    "multiple_choice": ("multiple_choice", {}, ["logits"]),
}  # fmt: skip


def load(folder, kind, head, **sizes):
    task, settings, _ = HEADS[head]
    write_folder(folder, kind, task, sizes, **settings)
    return load_folder(str(folder))


def runner(loaded, graph):
    """Runs a graph as a runtime would run its file."""

    def run(inputs):
        outputs = graph(*(tf.constant(inputs[name]) for name in input_names(loaded)))
        return {name: value.numpy() for name, value in outputs.items()}

    return run


def export(form, loaded, folder, precision):
    """Writes a file; returns the function that runs it."""
    folder.mkdir(exist_ok=True)
    FORMATS[form].export(loaded, folder, precision)
    return FORMATS[form].open_file(str(folder / FORMATS[form].MODEL_FILE))


def outputs_of(loaded, inputs):
    """What the model itself returns for the inputs of a graph, traced for their sizes."""
    inputs = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    if loaded.task != "pretraining":
        return loaded.model(inputs)
    encoded = loaded.model.encoder(inputs)
    batch, length = inputs["input_ids"].shape
    positions = tf.tile(tf.range(length)[None], [batch, 1])  # [B, T]
    return {**encoded, **loaded.model({**inputs, "masked_lm_positions": positions})}


@pytest.mark.parametrize("head, kind", quick_by_pairs(HEADS, ("bert", "albert")))
def test_the_graph_computes_rows_of_any_number_and_length(tmp_path, kind, head):
    loaded = load(tmp_path / "model", kind, head, num_hidden_layers=1 if head != "layers" else 2)
    run = runner(loaded, make_graph(loaded, "int64"))
    for batch, length in ((1, 32), (3, 7)):
        inputs = sample_inputs(loaded, batch, length, tf.int64, seed=length)
        found = run(inputs)
        assert sorted(found) == HEADS[head][2]
        wanted = outputs_of(loaded, inputs)
        for name, value in found.items():
            np.testing.assert_allclose(value, wanted[name], atol=1e-5, err_msg=name)


def test_weights_that_a_folder_lacks_have_no_output(tmp_path):
    loaded = load(tmp_path / "model", "bert", "pretraining", num_hidden_layers=1)
    missing = ("bert/pooler/dense/kernel", "cls/predictions/output_bias")
    loaded = dataclasses.replace(loaded, missing=missing)
    outputs = make_graph(loaded, "int32").get_concrete_function().structured_outputs
    assert list(outputs) == ["sequence_output"]


def test_description(tmp_path):
    loaded = load(tmp_path / "model", "bert", "ner", num_hidden_layers=1)
    description = describe(loaded, make_graph(loaded, "int64"), "int8")
    open_sizes = {"dtype": "int64", "shape": ["batch", "sequence"]}
    names = ("input_ids", "input_mask", "segment_ids")
    assert description["inputs"] == dict.fromkeys(names, open_sizes)
    logits = {"dtype": "float32", "shape": ["batch", "sequence", 3]}
    assert description["outputs"] == {"logits": logits}
    assert description["labels"] == ["O", "B-LC", "I-LC"]
    assert (description["task"], description["precision"]) == ("ner", "int8")
    assert description["config"]["vocab_size"] == loaded.config.vocab_size


def test_options_are_an_axis_of_their_own(tmp_path):
    loaded = load(tmp_path / "model", "bert", "multiple_choice", num_hidden_layers=1)
    description = describe(loaded, make_graph(loaded, "int32"), "float32")
    assert description["inputs"]["input_ids"]["shape"] == ["batch", "options", "sequence"]
    assert description["outputs"]["logits"]["shape"] == ["batch", "options"]


@pytest.mark.parametrize(
    ("task", "recorded", "task_type"),
    [
        ("pretraining", {}, None),
        ("ner", {}, None),
        ("question_answering", {"start_n_top": 0}, None),
        ("multiple_choice", {}, None),
        ("classification", {"task_type": "multi_label"}, "multi_label"),
        ("classification", {"task_type": "single_label"}, "single_label"),
        ("classification", {"task_type": "regression", "labels": None}, "regression"),
        # Without the flag, a folder records no type.
        ("classification", {}, "single_label"),
        ("classification", {"task_name": "korsts", "labels": None}, "regression"),
        ("classification", {"task_name": "nsmc", "labels": None}, "single_label"),
    ],
)
def test_settings(tmp_path, task, recorded, task_type):
    write_folder(tmp_path, "bert", task, {"num_hidden_layers": 1}, **recorded)
    loaded = load_folder(str(tmp_path))
    wanted = {**VALUES.get(task, {}), **recorded, "task_type": task_type}
    found = describe(loaded, make_graph(loaded, "int32"), "float32")["settings"]
    assert found == {name: value for name, value in wanted.items() if value is not None}


def test_a_file_that_computes_something_else_is_refused(tmp_path):
    loaded = load(tmp_path / "model", "bert", "spans", num_hidden_layers=1)
    graph = make_graph(loaded, "int32")

    def run(inputs, change=0.0):
        outputs = runner(loaded, graph)(inputs)
        outputs["end_logits"][-1, -1] += change
        return outputs

    check_file(loaded, graph, run, "float32")
    for change in (1e-3, np.nan):
        with pytest.raises(InputError, match="--precision=float32 .* Received: end_logits"):
            check_file(loaded, graph, lambda inputs, by=change: run(inputs, by), "float32")
    check_file(loaded, graph, lambda inputs: run(inputs, 1e-3), "float16")


def test_a_beam_wider_than_the_usual_rows(tmp_path):
    """As --start_n_top=30 leaves it: a row must have as many pieces."""
    settings = {"start_n_top": 30, "end_n_top": 29, "max_seq_length": 32}
    write_folder(tmp_path, "albert", "question_answering", {"num_hidden_layers": 1}, **settings)
    loaded = load_folder(str(tmp_path))
    graph = make_graph(loaded, "int32")
    check_file(loaded, graph, runner(loaded, graph), "float32")


def need(form):
    for library in export_model.FORMATS[form].libraries:
        pytest.importorskip(library, reason=f"needs the extra {form!r}")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["bert", "albert"])
@pytest.mark.parametrize("head", HEADS)
def test_files_compute_what_the_model_computes(tmp_path, form, kind, head):
    """At sizes that the export itself did not try; compared with the model, not its graph."""
    need(form)
    loaded = load(tmp_path / "model", kind, head)
    for precision, bound in {"float32": 1e-4, "float16": 1e-2}.items():
        run = export(form, loaded, tmp_path / precision, precision)
        for batch, length in ((1, 9), (5, 17)):
            inputs = sample_inputs(loaded, batch, length, tf.as_dtype(DTYPES[form]), seed=length)
            found, wanted = run(inputs), outputs_of(loaded, inputs)
            assert sorted(found) == HEADS[head][2]
            for name, value in found.items():
                if precision == "float32" or not name.endswith("index"):
                    np.testing.assert_allclose(value, wanted[name], atol=bound, err_msg=name)


def test_the_exact_gelu_has_an_operator_in_onnx(tmp_path):
    """transformers' default, so nearly every foreign BERT has it."""
    need("onnx")
    loaded = load(tmp_path, "bert", "spans", num_hidden_layers=1, hidden_act="gelu_erf")
    proto = onnx_model.convert(loaded, describe(loaded, make_graph(loaded, "int64"), ""))
    assert "Erf" in {node.op_type for node in proto.graph.node}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("activation", ACTIVATION_NAMES)
def test_every_activation_in_every_precision(tmp_path, form, activation):
    need(form)
    sizes = {"num_hidden_layers": 1, "hidden_act": activation, "initializer_range": 0.3}
    loaded = load(tmp_path / "model", "bert", "pretraining", **sizes)
    for precision, bound in {"float32": 1e-4, "float16": 2e-2}.items():
        run = export(form, loaded, tmp_path / precision, precision)
        inputs = sample_inputs(loaded, 2, 13, tf.as_dtype(DTYPES[form]), seed=1)
        differences = largest_differences(run(inputs), outputs_of(loaded, inputs))
        assert max(differences.values()) < bound
    FORMATS[form].export(loaded, tmp_path, "int8")


def test_masked_values_hide_no_difference():
    wanted = {"x": np.array([-1e30, 3.0, 1.0], np.float32)}
    assert largest_differences({"x": wanted["x"] + np.float32(1)}, wanted)["x"] == np.float32(1 / 3)
    assert largest_differences({"x": wanted["x"] * [2, 1, 1]}, wanted)["x"] == 0  # masked in both
    assert largest_differences({"x": wanted["x"] * [0, 1, 1]}, wanted)["x"] == np.inf


SMALL = {"vocab_size": 6000, "hidden_size": 128, "intermediate_size": 512}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_int8(tmp_path, form, kind):
    """The same most probable pieces, of random weights too; ONNX keeps one table, LiteRT two."""
    need(form)
    loaded = load(tmp_path / "model", kind, "pretraining", **SMALL)
    run = export(form, loaded, tmp_path, "int8")
    path = tmp_path / FORMATS[form].MODEL_FILE
    size = sum(4 * int(np.prod(weight.shape)) for weight in loaded.model.weights)
    # A quarter, or two tables, and the graph itself: of so small an ALBERT a tenth.
    assert path.stat().st_size / size < {"onnx": 0.4, "litert": 0.5}[form]
    same = []
    for seed in range(20):
        inputs = sample_inputs(loaded, 1, 32, tf.as_dtype(DTYPES[form]), seed)
        found, wanted = run(inputs), outputs_of(loaded, inputs)
        differences = largest_differences(found, {name: wanted[name] for name in found})
        assert 0 < max(differences.values()) < check.TOLERANCES["int8"]
        logits = np.asarray(wanted["masked_lm_logits"])
        same.append(found["masked_lm_logits"].argmax(-1) == logits.argmax(-1))
    assert np.mean(same) > 0.9


@pytest.mark.slow
def test_onnx_metadata_and_one_table(tmp_path):
    need("onnx")
    import onnx

    loaded = load(tmp_path / "model", "bert", "ner")
    onnx_model.export(loaded, tmp_path, "float32")
    proto = onnx.load(tmp_path / onnx_model.MODEL_FILE)
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert properties == {"task": "ner", "precision": "float32", "labels": "O,B-LC,I-LC"}
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["batch", "sequence"]
    assert json.loads((tmp_path / "model.json").read_text())["labels"] == ["O", "B-LC", "I-LC"]
    assert (tmp_path / "vocab.txt").exists()
    loaded = load(tmp_path / "pretraining", "bert", "pretraining")
    onnx_model.export(loaded, tmp_path, "float32")
    proto = onnx.load(tmp_path / onnx_model.MODEL_FILE)
    config = loaded.config
    table = sorted((config.vocab_size, config.embedding_size))
    assert [sorted(value.dims) for value in proto.graph.initializer].count(table) == 1


@pytest.mark.slow
def test_litert_holds_its_description(tmp_path):
    need("litert")
    litert_model.export(load(tmp_path / "model", "bert", "ner"), tmp_path, "float32")
    with zipfile.ZipFile(tmp_path / litert_model.MODEL_FILE) as archive:
        description = json.loads(archive.read("model.json"))
    assert description == json.loads((tmp_path / "model.json").read_text())
