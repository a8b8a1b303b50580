"""A config.json of transformers means the same network here, in both directions."""

import json

import pytest
from transformers_models import FOLDERS

from albert_tf import AlbertConfig
from bert_common.errors import InputError
from bert_tf import BertConfig
from electra_tf import ElectraConfig
from model_formats.config_file import ConfigFile
from model_formats.transformers_files.config import (
    ACTIVATIONS,
    ACTIVATIONS_BACK,
    DEFAULTS,
    from_huggingface,
    read_config,
    to_huggingface,
)
from tests.support.libraries import needs_torch
from tests.support.paths import run_python

BASE = {"vocab_size": 99, "model_type": "bert"}


def test_the_two_forms_of_gelu():
    for theirs, ours in (("gelu", "gelu_erf"), ("gelu_new", "gelu"), ("gelu_pytorch_tanh", "gelu")):
        assert from_huggingface({**BASE, "hidden_act": theirs}, "x").config.hidden_act == ours
    configs = {a: BertConfig(9, hidden_act=a) for a in ACTIVATIONS_BACK}
    back = {a: to_huggingface(c, "bert")["hidden_act"] for a, c in configs.items()}
    assert back["gelu"] == back["gelu_tanh"] == "gelu_new" and back["gelu_erf"] == "gelu"
    # Without the key: what transformers' class has.
    assert from_huggingface(BASE, "x").config.hidden_act == "gelu_erf"
    albert = from_huggingface({**BASE, "model_type": "albert"}, "x").config
    assert albert.hidden_act == "gelu"


@pytest.mark.parametrize("act", ("gelu", "gelu_tanh", "gelu_erf", "relu", "tanh", "linear", ""))
@pytest.mark.parametrize("config_class", (BertConfig, AlbertConfig))
def test_there_and_back(config_class, act):
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "num_hidden_layers": 5}
    config = config_class(77, **sizes, hidden_act=act, layer_norm_eps=1e-6)
    kind = "bert" if config_class is BertConfig else "albert"
    found = from_huggingface(to_huggingface(config, kind), "x").config
    assert found == config_class(77, **sizes, hidden_act=found.hidden_act, layer_norm_eps=1e-6)
    same = {"gelu_tanh": "gelu", "": "linear"}
    assert found.hidden_act == same.get(act, act)


def test_sizes_of_published_models():
    base = {"hidden_size": 768, "hidden_act": "gelu"}
    roberta = {
        **base, "model_type": "roberta", "vocab_size": 32000, "type_vocab_size": 1,
        "max_position_embeddings": 514, "layer_norm_eps": 1e-5, "pad_token_id": 1,
    }  # fmt: skip
    found = from_huggingface(roberta, "klue/roberta-base")
    assert found.model_type == "bert" and found.skipped_positions == 2
    assert (found.config.max_position_embeddings, found.config.type_vocab_size) == (512, 2)
    assert found.config.layer_norm_eps == 1e-5
    electra = {"model_type": "electra", "vocab_size": 35000, "hidden_act": "gelu"}
    wide = from_huggingface({**electra, **base, "embedding_size": 768}, "koelectra-base-v3")
    assert wide.model_type == "electra" and isinstance(wide.config, ElectraConfig)
    narrow = from_huggingface({**electra, "generator_size": "0.5"}, "koelectra-small-v3")
    assert narrow.model_type == "electra" and narrow.config.num_hidden_layers == 12
    assert narrow.config.generator_size == 0.25  # another network's, which the file has as a text
    assert (narrow.config.embedding_size, narrow.config.hidden_size) == (128, 256)


@pytest.mark.parametrize("width, heads", ((896, 14), (516, 6)))
def test_an_electra_whose_quarter_is_no_generator_s_width(width, heads):
    """224 with three heads, 129 with two; a discriminator alone has no generator to fit."""
    values = {"model_type": "electra", "vocab_size": 99, "hidden_act": "gelu"}
    sizes = {"hidden_size": width, "num_attention_heads": heads}
    config = from_huggingface({**values, **sizes}, "config.json").config
    assert (config.hidden_size, config.generator.hidden_size) == (width, 64)
    with pytest.raises(InputError, match="hidden_size must be a multiple"):
        from_huggingface({**values, **sizes, "num_attention_heads": 5}, "config.json")


@pytest.mark.parametrize(
    "values, message",
    (
        ({"model_type": "gpt2"}, "model_type must be one of bert, albert, electra, roberta"),
        ({"model_type": ["bert"]}, "model_type must be one of"),
        ({"hidden_act": "silu"}, "hidden_act must be one of .*Received: 'silu'"),
        ({"hidden_act": None}, "hidden_act must be one of"),
        ({"is_decoder": True}, "is_decoder must be False"),
        ({"position_embedding_type": "relative_key"}, "must be 'absolute'"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads must be {}"),
        ({"hidden_size": "768"}, "hidden_size must be a positive integer"),
        ({"layer_norm_eps": 0}, "layer_norm_eps must be above 0"),
        ({"hidden_size": 7}, "hidden_size must be a multiple of num_attention_heads"),
        ({"model_type": "roberta", "pad_token_id": "1"}, "pad_token_id must be an integer"),
        ({"model_type": "electra", "num_hidden_layers": None}, "must be a positive integer"),
        ({"vocab_size": 1.5}, "vocab_size must be a positive integer"),
    ),
)
def test_what_is_refused(values, message):
    with pytest.raises(InputError, match=message) as caught:
        from_huggingface({**BASE, **values}, "config.json")
    assert str(caught.value).startswith("config.json: ")


def test_files_without_a_model_type():
    old = {"vocab_size": 9, "architectures": ["BertForMaskedLM"]}
    assert from_huggingface(old, "x").kind == "bert"
    assert from_huggingface({"vocab_size": 9, "pad_token_id": 0}, "x", "albert").kind == "albert"
    with pytest.raises(InputError, match="Received: None"):
        from_huggingface({"vocab_size": 9, "pad_token_id": 0}, "x")


@pytest.mark.parametrize(
    "name, more, kind",
    (
        ("bert_config.json", {}, "bert"),
        ("albert_config.json", {}, "albert"),
        ("small.json", {}, "bert"),
        ("small.json", {"embedding_size": 8}, "albert"),
        ("bert_like.json", {"num_hidden_groups": 1}, "albert"),
        ("config.json", {"model_type": "albert"}, "albert"),
        ("albert_config.json", {"model_type": "bert"}, "bert"),
    ),
)
def test_a_file_says_which_encoder_it_describes(name, more, kind, tmp_path):
    (tmp_path / name).write_text(json.dumps({"vocab_size": 9, **more}))
    file = ConfigFile(str(tmp_path / name))
    assert file.model_type == kind
    assert type(file.config) is (BertConfig if kind == "bert" else AlbertConfig)


def test_a_file_given_as_ours_is_recognised(tmp_path):
    path = str(FOLDERS / "bert_erf" / "config.json")
    assert ConfigFile(path, "bert").config.hidden_act == "gelu_erf"
    with pytest.raises(InputError, match="must describe a model of the kind ALBERT"):
        ConfigFile(path, "albert").config_with()
    with pytest.raises(InputError, match="korean_bert.load_model reads folders of trans"):
        BertConfig.from_json_file(path)
    ours = tmp_path / "bert_config.json"
    ours.write_text(json.dumps({"vocab_size": 9, "hidden_act": "gelu"}))
    assert ConfigFile(str(ours), "bert").config.hidden_act == "gelu"
    with pytest.raises(InputError, match="must be a config.json of transformers"):
        read_config(str(ours))
    for text in ("{", "[]", '"'):
        ours.write_text(text)
        with pytest.raises(InputError, match="bert_config.json must"):
            ConfigFile(str(ours), "bert").config_with()


@pytest.mark.slow
@needs_torch
def test_defaults_are_those_of_transformers():
    """In a process of its own: torch and TensorFlow do not go together in one."""
    code = (
        "import json; from transformers import AutoConfig; "
        "from transformers.activations import ACT2FN; "
        f"made = {{kind: AutoConfig.for_model(kind).to_dict() for kind in {list(DEFAULTS)}}}; "
        "print(json.dumps([made, list(ACT2FN)]))"
    )
    configs, activations = json.loads(run_python("-c", code, check=True).stdout)
    assert set(ACTIVATIONS) | set(ACTIVATIONS_BACK.values()) <= set(activations)
    for kind, defaults in DEFAULTS.items():
        assert {key: configs[kind][key] for key in defaults} == defaults
