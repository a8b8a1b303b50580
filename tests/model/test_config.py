"""Configurations: published files load, wrong ones are refused, sizes give published counts."""

import dataclasses
import json

import numpy as np
import pytest
from paths import TEST_DATA

from albert_tf import AlbertConfig, AlbertModel
from bert_common.errors import InputError
from bert_tf import BertConfig, BertModel

CHECKPOINTS = TEST_DATA / "checkpoints"
PUBLISHED = sorted(CHECKPOINTS.glob("*/*_config.json"))
BOTH = (BertConfig, AlbertConfig)


def write(tmp_path, text):
    """A file of that text; its path."""
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refusal(action, *arguments, **keywords):
    """The one-line message of the InputError that the call raises."""
    with pytest.raises(InputError) as caught:
        action(*arguments, **keywords)
    message = str(caught.value)
    assert "\n" not in message
    return message


def parameters(config):
    """The encoder's weights with its pooler, by the formulas of the papers."""
    v, e, h = config.vocab_size, config.embedding_size, config.hidden_size
    i, p, s = config.intermediate_size, config.max_position_embeddings, config.type_vocab_size
    embeddings = (v + p + s) * e + 2 * e
    block = 4 * (h * h + h) + (h * i + i) + (i * h + h) + 2 * 2 * h
    pooler = h * h + h
    if isinstance(config, BertConfig):
        return embeddings + config.num_hidden_layers * block + pooler
    projection = e * h + h if e != h else 0
    blocks = config.num_hidden_groups * config.inner_group_num
    return embeddings + projection + blocks * block + pooler


def test_there_are_published_files_of_both_kinds():
    assert {path.name for path in PUBLISHED} == {"bert_config.json", "albert_config.json"}


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_published_file_loads(path):
    config_class = AlbertConfig if path.name.startswith("albert") else BertConfig
    config = config_class.from_json_file(path)
    values = json.loads(path.read_text())
    known = {field.name for field in dataclasses.fields(config_class)}
    assert {name: getattr(config, name) for name in known & set(values)} == {
        name: values[name] for name in known & set(values)
    }
    assert config_class.from_dict(values) == config


# What published files hold beyond sizes and rates. Google's: multilingual and Chinese BERT; ALBERT
# of all four sizes, the last key in xxlarge alone. Others': albert_zh of Chinese ALBERT, and what
# Hugging Face's transformers write.
GOOGLE_BERT = {
    "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
}  # fmt: skip
GOOGLE_ALBERT = {
    "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1,
    "layers_to_keep": [],
}  # fmt: skip
ALBERT_ZH = {**GOOGLE_BERT, "ln_type": "postln"}
TRANSFORMERS = {
    "architectures": ["BertForMaskedLM"], "classifier_dropout": None, "layer_norm_eps": 1e-12,
    "gradient_checkpointing": False, "output_past": True, "pad_token_id": 0, "use_cache": True,
    "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0",
}  # fmt: skip


@pytest.mark.parametrize(
    "config_class, more",
    (
        (BertConfig, GOOGLE_BERT),
        (BertConfig, {**GOOGLE_BERT, **TRANSFORMERS, "model_type": "bert"}),
        (AlbertConfig, GOOGLE_ALBERT),
        (AlbertConfig, ALBERT_ZH),
        (
            AlbertConfig,
            {**GOOGLE_ALBERT, **TRANSFORMERS, "model_type": "albert", "bos_token_id": 2,
             "eos_token_id": 3, "classifier_dropout_prob": 0.1},
        ),
    ),
    ids=("google", "transformers", "google_albert", "albert_zh", "transformers_albert"),
)  # fmt: skip
def test_keys_of_published_files_that_mean_nothing(config_class, more):
    assert config_class.from_dict({"vocab_size": 9, **more}) == config_class(vocab_size=9)


@pytest.mark.parametrize(
    "config_class, key, value, must",
    (
        (AlbertConfig, "layers_to_keep", [0, 1], "[]"),
        (AlbertConfig, "net_structure_type", 1, "0"),
        (AlbertConfig, "gap_size", 2, "0"),
        (AlbertConfig, "num_memory_blocks", 1, "0"),
        (AlbertConfig, "down_scale_factor", 2, "1"),
        (AlbertConfig, "ln_type", "preln", "'postln'"),
        (AlbertConfig, "model_type", "bert", "'albert'"),
        (BertConfig, "model_type", "roberta", "'bert'"),
        (BertConfig, "directionality", "left", "'bidi'"),
        (BertConfig, "layer_norm_eps", 1e-5, "1e-12"),
        (BertConfig, "position_embedding_type", "relative_key", "'absolute'"),
        (BertConfig, "is_decoder", True, "False"),
    ),
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_value_that_means_another_model_is_refused(config_class, key, value, must):
    message = refusal(config_class.from_dict, {"vocab_size": 9, key: value})
    assert f"{key} must be {must}" in message and f"Received: {value!r}" in message


def test_the_keys_of_published_files_of_albert_are_not_bert_s():
    assert "gap_size" in refusal(BertConfig.from_dict, {"vocab_size": 9, "gap_size": 0})
    # A fork's, whose model has one more table.
    assert "use_turn" in refusal(BertConfig.from_dict, {"vocab_size": 9, "use_turn_embeddings": 1})


@pytest.mark.parametrize("config_class", BOTH)
def test_written_file_reads_back(config_class, tmp_path):
    config = config_class(vocab_size=99, hidden_size=128, num_attention_heads=2, hidden_act="tanh")
    assert config_class.from_json_file(write(tmp_path, json.dumps(dataclasses.asdict(config)))) == (
        config
    )


@pytest.mark.parametrize("config_class", BOTH)
def test_unknown_keys_are_named_with_the_file(config_class, tmp_path):
    path = write(tmp_path, '{"vocab_size": 9, "hiden_size": 4, "num_layers": 2}')
    message = refusal(config_class.from_json_file, path)
    assert path in message and "hiden_size" in message and "num_layers" in message
    assert "vocab_size" not in message


@pytest.mark.parametrize("config_class", BOTH)
def test_missing_vocab_size(config_class, tmp_path):
    path = write(tmp_path, '{"hidden_size": 64}')
    message = refusal(config_class.from_json_file, path)
    assert path in message and "vocab_size must be given" in message
    assert "vocab_size must be given" in refusal(config_class.from_dict, {})


INTEGERS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


@pytest.mark.parametrize("config_class", BOTH)
@pytest.mark.parametrize("value", ("12", -12, 0, True, False, 12.0, None, [12]), ids=repr)
def test_sizes_are_positive_integers(config_class, value):
    names = INTEGERS
    if config_class is AlbertConfig:
        names = (*INTEGERS, "embedding_size", "num_hidden_groups", "inner_group_num")
    for name in names:
        message = refusal(config_class.from_dict, {"vocab_size": 9, name: value})
        assert f"{name} must be a positive integer. Received: {value!r}" in message


@pytest.mark.parametrize("config_class", BOTH)
@pytest.mark.parametrize("name", ("hidden_dropout_prob", "attention_probs_dropout_prob"))
def test_rates_are_at_least_0_but_below_1(config_class, name):
    for value in ("0.1", None, [0.1], -0.1, 1, 1.5, True, float("nan")):
        message = refusal(config_class.from_dict, {"vocab_size": 9, name: value})
        assert name in message and f"Received: {value!r}" in message
    for value in (0, 0.0, 0.5):
        assert getattr(config_class.from_dict({"vocab_size": 9, name: value}), name) == value


@pytest.mark.parametrize("config_class", BOTH)
def test_initializer_range_is_a_number_not_below_0(config_class):
    for value in ("0.02", None, -0.02):
        message = refusal(config_class.from_dict, {"vocab_size": 9, "initializer_range": value})
        assert "initializer_range" in message and f"Received: {value!r}" in message
    assert config_class(vocab_size=9, initializer_range=0).initializer_range == 0


@pytest.mark.parametrize("config_class", BOTH)
def test_heads_must_divide_the_hidden_size(config_class):
    message = refusal(config_class, vocab_size=9, hidden_size=64, num_attention_heads=5)
    assert "hidden_size=64" in message and "num_attention_heads=5" in message


def test_albert_has_no_more_groups_than_layers():
    message = refusal(AlbertConfig, vocab_size=9, num_hidden_layers=2, num_hidden_groups=3)
    assert "num_hidden_groups=3" in message and "num_hidden_layers=2" in message


@pytest.mark.parametrize("config_class", BOTH)
def test_activation(config_class):
    for name in ("gelu_new", "swish", "GELU ", 5):
        message = refusal(config_class, vocab_size=9, hidden_act=name)
        assert "hidden_act" in message and repr(name) in message
    for name in ("gelu", "GELU", "ReLU", "Tanh", "linear", "", None):
        assert config_class(vocab_size=9, hidden_act=name).hidden_act == name


def test_activation_without_regard_to_case_reaches_the_model():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=9, intermediate_size=8, **sizes)
    ids = {"input_ids": np.arange(6, dtype=np.int32).reshape(2, 3)}
    lower, upper, other = (
        BertModel(dataclasses.replace(config, hidden_act=name)) for name in ("relu", "RELU", "tanh")
    )
    for model in (upper, other):
        model.set_weights(lower.get_weights())
    expected = lower(ids)["sequence_output"]
    np.testing.assert_array_equal(upper(ids)["sequence_output"], expected)
    assert np.abs(other(ids)["sequence_output"] - expected).max() > 1e-6


@pytest.mark.parametrize("config_class", BOTH)
def test_files_that_are_no_configuration(config_class, tmp_path):
    for text in ("{'vocab_size': 9}", '{"vocab_size": 9', ""):
        path = write(tmp_path, text)
        message = refusal(config_class.from_json_file, path)
        assert path in message and "must be a JSON file" in message
    for text, kind in (("[1, 2]", "list"), ("9", "int"), ("null", "NoneType")):
        path = write(tmp_path, text)
        message = refusal(config_class.from_json_file, path)
        assert path in message and "JSON object" in message and kind in message
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    assert str(binary) in refusal(config_class.from_json_file, str(binary))
    missing = str(tmp_path / "missing.json")
    message = refusal(config_class.from_json_file, missing)
    assert missing in message and "No such file" in message
    assert str(tmp_path) in refusal(config_class.from_json_file, str(tmp_path))


@pytest.mark.parametrize("config_class", BOTH)
def test_wrong_value_in_a_file_names_the_file(config_class, tmp_path):
    path = write(tmp_path, '{"vocab_size": 9, "num_hidden_layers": "2"}')
    message = refusal(config_class.from_json_file, path)
    assert path in message and "num_hidden_layers" in message


@pytest.mark.parametrize("config_class", BOTH)
def test_configuration_is_frozen(config_class):
    config = config_class(vocab_size=9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.vocab_size = 10
    assert config == config_class(vocab_size=9) and hash(config) == hash(config_class(vocab_size=9))


def test_defaults_are_those_of_the_reference_repositories():
    assert dataclasses.asdict(BertConfig(vocab_size=9)) == {
        "vocab_size": 9,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 16,
        "initializer_range": 0.02,
    }
    assert dataclasses.asdict(AlbertConfig(vocab_size=9)) == {
        "vocab_size": 9,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_hidden_layers": 12,
        "num_hidden_groups": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "inner_group_num": 1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0,
        "attention_probs_dropout_prob": 0,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
    }


# The encoder with its pooler. BERT: arXiv:1810.04805 (110M, 340M), arXiv:1908.08962;
# ALBERT: arXiv:1909.11942 (12M, 18M, 60M, 235M), with the vocabularies of the released models.
BERT_COUNTS = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}
ALBERT_COUNTS = {
    "base": 11_683_584,
    "large": 17_683_968,
    "xlarge": 58_724_864,
    "xxlarge": 222_595_584,
}


@pytest.mark.parametrize("name", BERT_COUNTS)
def test_bert_preset_has_the_published_count(name):
    config = BertConfig.from_preset(name, vocab_size=30522)
    assert parameters(config) == BERT_COUNTS[name]
    assert config.hidden_size == 64 * config.num_attention_heads


@pytest.mark.parametrize("name", ALBERT_COUNTS)
def test_albert_preset_has_the_published_count(name):
    config = AlbertConfig.from_preset(name, vocab_size=30000)
    assert parameters(config) == ALBERT_COUNTS[name]
    # 64 wide, but 128 in the xlarge model of version 2.
    assert config.hidden_size // config.num_attention_heads == (128 if name == "xlarge" else 64)


@pytest.mark.parametrize(
    "config",
    (
        BertConfig.from_preset("tiny", vocab_size=50),
        BertConfig.from_preset("mini", vocab_size=40, num_hidden_layers=3),
        BertConfig(31, 10, 2, 1, 7, max_position_embeddings=9, type_vocab_size=3),
    ),
    ids=("tiny", "mini", "odd"),
)
def test_bert_model_has_as_many_weights_as_the_formula(config):
    assert BertModel(config).count_params() == parameters(config)


@pytest.mark.parametrize(
    "changes",
    (
        {},
        {"num_hidden_groups": 2, "inner_group_num": 3},
        {"embedding_size": 12},
        {"embedding_size": 20, "num_hidden_layers": 9, "num_hidden_groups": 3},
    ),
    ids=("one_group", "groups", "one_width", "wide"),
)
def test_albert_model_has_as_many_weights_as_the_formula(changes):
    sizes = {"hidden_size": 12, "intermediate_size": 17, "num_attention_heads": 3}
    config = AlbertConfig(**{"vocab_size": 40, "embedding_size": 5, **sizes, **changes})
    assert AlbertModel(config).count_params() == parameters(config)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_published_checkpoint_has_as_many_weights_as_the_formula(path):
    config_class = AlbertConfig if path.name.startswith("albert") else BertConfig
    total = 0
    for line in path.with_name("VARIABLES.tsv").read_text().splitlines():
        name, _, shape = line.split("\t")[:3]
        if name.startswith("bert/") and "adam" not in name:
            total += int(np.prod(json.loads(shape)))
    assert total == parameters(config_class.from_json_file(path))


@pytest.mark.parametrize("config_class", BOTH)
def test_preset_takes_changes_but_no_unknown_name(config_class):
    config = config_class.from_preset("base", vocab_size=77, max_position_embeddings=128)
    assert (config.vocab_size, config.max_position_embeddings) == (77, 128)
    assert (config.num_hidden_layers, config.type_vocab_size) == (12, 2)
    message = refusal(config_class.from_preset, "huge", vocab_size=77)
    assert "'huge'" in message and "base, large" in message
