"""Published configurations load; models of their sizes have the published number of weights."""

import dataclasses
import json

import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import BertConfig, BertModel
from tests.support.paths import TEST_DATA

CHECKPOINTS = TEST_DATA / "checkpoints"
PUBLISHED = sorted(CHECKPOINTS.glob("*/*_config.json"))


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
    for name in {field.name for field in dataclasses.fields(config_class)} & set(values):
        assert getattr(config, name) == values[name], name
    assert config_class.from_dict(values) == config


# The encoder with its pooler. BERT: arXiv:1810.04805 (110M, 340M), arXiv:1908.08962;
# ALBERT: arXiv:1909.11942 (12M, 18M, 60M, 235M), with the vocabularies of the released models.
COUNTS = {
    (BertConfig, "tiny"): 4_385_920,
    (BertConfig, "mini"): 11_170_560,
    (BertConfig, "small"): 28_763_648,
    (BertConfig, "medium"): 41_373_184,
    (BertConfig, "base"): 109_482_240,
    (BertConfig, "large"): 335_141_888,
    (AlbertConfig, "base"): 11_683_584,
    (AlbertConfig, "large"): 17_683_968,
    (AlbertConfig, "xlarge"): 58_724_864,
    (AlbertConfig, "xxlarge"): 222_595_584,
}


@pytest.mark.parametrize("config_class, name", COUNTS)
def test_a_preset_has_the_published_count(config_class, name):
    vocab_size = 30522 if config_class is BertConfig else 30000
    config = config_class.from_preset(name, vocab_size=vocab_size)
    assert parameters(config) == COUNTS[config_class, name]
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
