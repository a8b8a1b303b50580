"""Configurations: keys of published files are accepted, wrong values are refused."""

import dataclasses

import pytest

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel
from electra_tf import ElectraModel
from tests.support.refusals import refused

BOTH = (BertConfig, AlbertConfig)


# What published files hold beyond sizes and rates. Google's: multilingual and Chinese BERT; ALBERT
# of all four sizes, the last key in xxlarge alone. Others': albert_zh of Chinese ALBERT.
GOOGLE_BERT = {
    "directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform",
}  # fmt: skip
GOOGLE_ALBERT = {
    "net_structure_type": 0, "gap_size": 0, "num_memory_blocks": 0, "down_scale_factor": 1,
    "layers_to_keep": [],
}  # fmt: skip
ALBERT_ZH = {**GOOGLE_BERT, "ln_type": "postln"}


@pytest.mark.parametrize(
    "config_class, more",
    ((BertConfig, GOOGLE_BERT), (AlbertConfig, GOOGLE_ALBERT), (AlbertConfig, ALBERT_ZH)),
    ids=("google", "google_albert", "albert_zh"),
)
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
        (BertConfig, "directionality", "left", "'bidi'"),
    ),
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_value_that_means_another_model_is_refused(config_class, key, value, must):
    with refused(f"{key} must be {must}", f"Received: {value!r}"):
        config_class.from_dict({"vocab_size": 9, key: value})


@pytest.mark.parametrize("config_class", BOTH)
@pytest.mark.parametrize("key", ("model_type", "architectures", "pad_token_id", "is_decoder"))
def test_files_of_transformers_are_not_misread(config_class, key):
    """Their "gelu" is another function."""
    with refused(f"Received: a file with {key}"):
        config_class.from_dict({"vocab_size": 9, key: None, "hidden_act": "gelu"})


def test_the_keys_of_published_files_of_albert_are_not_bert_s():
    with refused("gap_size"):
        BertConfig.from_dict({"vocab_size": 9, "gap_size": 0})
    with refused("use_turn_embeddings"):  # a fork's, whose model has one more table
        BertConfig.from_dict({"vocab_size": 9, "use_turn_embeddings": 1})


SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "embedding_size", "num_hidden_groups",
    "inner_group_num",
)  # fmt: skip
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
# Keys, what the message says after "must", values that are refused, values that are taken.
VALUES = {
    "sizes": (SIZES, "be a positive integer", ("12", -12, 0, True, False, 12.0, None, [12]), ()),
    "rates": (RATES, "", ("0.1", None, [0.1], -0.1, 1, 1.5, True, float("nan")), (0, 0.0, 0.5)),
    "initial weights": (("initializer_range",), "", ("0.02", None, -0.02), (0, 0.5)),
    "epsilon": (("layer_norm_eps",), "", (0, -1e-12, "1e-5", None), (1e-5,)),
    "activation": (("hidden_act",), "be one of", ("gelu_new", "swish", "GELU ", 5),
                   ("gelu", "GELU", "ReLU", "Tanh", "linear", "", None)),
}  # fmt: skip


@pytest.mark.parametrize("config_class", BOTH)
@pytest.mark.parametrize("what", VALUES)
def test_values(config_class, what):
    keys, must, wrong, right = VALUES[what]
    if config_class is BertConfig:
        keys = [key for key in keys if key in BertConfig.__dataclass_fields__]
    for key in keys:
        for value in wrong:
            with refused(f"{key} must {must}", f"Received: {value!r}"):
                config_class.from_dict({"vocab_size": 9, key: value})
        for value in right:
            config = config_class.from_dict({"vocab_size": 9, key: value})
            assert getattr(config, key) == config.to_dict()[key] == value


def test_sizes_that_contradict_each_other():
    for config_class in BOTH:
        with refused("hidden_size=64", "num_attention_heads=5"):
            config_class(vocab_size=9, hidden_size=64, num_attention_heads=5)
    with refused("num_hidden_groups=3", "num_hidden_layers=2"):
        AlbertConfig(vocab_size=9, num_hidden_layers=2, num_hidden_groups=3)


@pytest.mark.parametrize(
    "model_class, other",
    ((BertModel, AlbertConfig), (AlbertModel, BertConfig), (ElectraModel, BertConfig)),
)
def test_a_model_gets_its_own_configuration(model_class, other):
    config = other(vocab_size=9, hidden_size=8, num_attention_heads=2, num_hidden_layers=1)
    with refused(f"Config. Received: {other.__name__}"):
        model_class(config)


# The content of a file -> what the message says besides its path.
REFUSED_FILES = {
    b"{'vocab_size': 9}": ("must be a JSON file",),
    b'{"vocab_size": 9': ("must be a JSON file",),
    b"": ("must be a JSON file",),
    b"\xff\xfe\x00": ("must be a JSON file",),
    b"[1, 2]": ("JSON object", "list"),
    b"9": ("JSON object", "int"),
    b"null": ("JSON object", "NoneType"),
    b'{"hidden_size": 64}': ("vocab_size must be given",),
    b'{"vocab_size": 9, "hiden_size": 4, "num_layers": 2}': ("Received: hiden_size, num_layers",),
    b'{"vocab_size": 9, "num_hidden_layers": "2"}': ("num_hidden_layers must be", "'2'"),
}


@pytest.mark.parametrize("config_class", BOTH)
def test_files_that_are_refused(config_class, tmp_path):
    path = tmp_path / "config.json"
    for content, words in REFUSED_FILES.items():
        path.write_bytes(content)
        with refused(path, *words):
            config_class.from_json_file(path)
    path.unlink()
    with refused(path, "No such file"):
        config_class.from_json_file(path)
    with refused(tmp_path):
        config_class.from_json_file(tmp_path)
    with refused("vocab_size must be given"):
        config_class.from_dict({})


def test_defaults_are_those_of_the_reference_repositories():
    """In the order of their fields; ALBERT has a width of embeddings and two numbers of groups."""
    bert, albert = (dataclasses.astuple(config_class(vocab_size=9)) for config_class in BOTH)
    assert bert == (9, 768, 12, 12, 3072, "gelu", 0.1, 0.1, 512, 16, 0.02, 1e-12)
    assert albert == (9, 128, 4096, 12, 1, 64, 16384, 1, "gelu", 0, 0, 512, 2, 0.02, 1e-12)
    assert "layer_norm_eps" not in BertConfig(vocab_size=9).to_dict()  # which files do not have


@pytest.mark.parametrize("config_class", BOTH)
def test_preset_takes_changes_but_no_unknown_name(config_class):
    config = config_class.from_preset("base", vocab_size=77, max_position_embeddings=128)
    assert (config.vocab_size, config.max_position_embeddings) == (77, 128)
    assert (config.num_hidden_layers, config.type_vocab_size) == (12, 2)
    with refused("'huge'", "base, large"):
        config_class.from_preset("huge", vocab_size=77)
