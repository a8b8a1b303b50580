"""Published configurations load; models of their sizes have the published number of weights."""

import dataclasses
import json
import math

import pytest

from albert_tf import AlbertConfig
from bert_tf import BertConfig
from tests.support.paths import TEST_DATA

PUBLISHED = sorted((TEST_DATA / "checkpoints").glob("*/*_config.json"))
assert {path.name for path in PUBLISHED} == {"bert_config.json", "albert_config.json"}


def encoder_weights(config):
    """With the pooler."""
    return sum(config.count_parts().values())


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_published_files(path):
    """They load, and the checkpoint beside each has as many weights as are counted."""
    config_class = AlbertConfig if path.name.startswith("albert") else BertConfig
    config = config_class.from_json_file(path)
    values = json.loads(path.read_text())
    for name in {field.name for field in dataclasses.fields(config_class)} & set(values):
        assert getattr(config, name) == values[name], name
    assert config_class.from_dict(values) == config
    total = 0
    for line in path.with_name("VARIABLES.tsv").read_text().splitlines():
        name, _, shape = line.split("\t")[:3]
        if name.startswith("bert/") and "adam" not in name:
            total += math.prod(json.loads(shape))
    assert total == encoder_weights(config)


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
    assert encoder_weights(config) == COUNTS[config_class, name]
    # 64 wide, but 128 in the xlarge model of version 2.
    assert config.hidden_size // config.num_attention_heads == (128 if name == "xlarge" else 64)
