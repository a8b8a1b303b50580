"""TF_CONFIG: the clusters it can describe, and what is wrong with others."""

import json
import re

import pytest

from bert_common.errors import InputError
from bert_tf.training.cluster import Cluster, read_cluster

A, B, C = "a:1", "b.example.com:22222", "[::1]:65535"


def configured(cluster, task):
    """An environment with TF_CONFIG."""
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def worker(index):
    return {"type": "worker", "index": index}


CHIEF = {"type": "chief", "index": 0}

CLUSTERS = {
    "two workers": (configured({"worker": [A, B]}, worker(1)), Cluster((A, B), 1)),
    "one worker": (configured({"worker": [C]}, worker(0)), Cluster((C,), 0)),
    "number as text": (
        configured({"worker": [A, B]}, {"type": "worker", "index": "1"}),
        Cluster((A, B), 1),
    ),
    "the chief": (configured({"worker": [A, B], "chief": [C]}, CHIEF), Cluster((C, A, B), 0)),
    "beside a chief": (
        configured({"chief": [C], "worker": [A, B]}, worker(1)),
        Cluster((C, A, B), 2),
    ),
    "not set": ({}, None),
    "empty": ({"TF_CONFIG": " "}, None),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_read_cluster(name):
    environment, expected = CLUSTERS[name]
    cluster = read_cluster(environment)
    assert cluster == expected
    assert cluster is None or cluster.is_chief == (expected.index == 0)


TWO = {"worker": [A, B]}
WRONG = {
    "not JSON": ({"TF_CONFIG": "{'cluster'"}, "must be JSON that names"),
    "not an object": ({"TF_CONFIG": "[]"}, "must be JSON that names the workers"),
    "no cluster": ({"TF_CONFIG": json.dumps({"task": worker(0)})}, "names the workers"),
    "no addresses": (configured({"worker": []}, worker(0)), "names the workers"),
    "one text": (configured({"worker": A}, worker(0)), "names the workers"),
    "no port": (configured({"worker": ["a"]}, worker(0)), '["a"]'),
    "port too large": (configured({"worker": ["a:65536"]}, worker(0)), "a:65536"),
    "no text": (configured({"worker": [1]}, worker(0)), "[1]"),
    "a parameter server": (configured({**TWO, "ps": [C]}, worker(0)), "worker. Received: ps"),
    "an address twice": (configured({"worker": [A, A]}, worker(0)), "Received: a:1, a:1"),
    "no task": ({"TF_CONFIG": json.dumps({"cluster": TWO})}, "says which of them this is"),
    "no index": (configured(TWO, {"type": "worker"}), "says which of them this is"),
    "an evaluator": (configured(TWO, {"type": "evaluator", "index": 0}), '"evaluator"'),
    "no such chief": (configured(TWO, CHIEF), '"type": "chief"'),
    "index too large": (configured(TWO, worker(2)), '"index": 2'),
    "index negative": (configured(TWO, worker(-1)), '"index": -1'),
}


@pytest.mark.parametrize("name", WRONG)
def test_tf_config_that_cannot_work(name):
    environment, expected = WRONG[name]
    with pytest.raises(InputError, match=re.escape(expected)) as raised:
        read_cluster(environment)
    message = str(raised.value)
    assert "TF_CONFIG" in message and "Received: " in message
