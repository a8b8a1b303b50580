"""TF_CONFIG: the clusters it can describe, and what is wrong with others."""

import json

import pytest

from bert_tf.training.cluster import Cluster, read_cluster
from tests.support.refusals import refused

A, B, C = "a:1", "b.example.com:22222", "[::1]:65535"


def configured(cluster, task):
    """An environment with TF_CONFIG."""
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def worker(index):
    return {"type": "worker", "index": index}


CHIEF = {"type": "chief", "index": 0}

CLUSTERS = {
    "two workers": ({"worker": [A, B]}, worker(1), Cluster((A, B), 1)),
    "one worker": ({"worker": [C]}, worker(0), Cluster((C,), 0)),
    "number as text": ({"worker": [A, B]}, worker("1"), Cluster((A, B), 1)),
    "the chief": ({"worker": [A, B], "chief": [C]}, CHIEF, Cluster((C, A, B), 0)),
    "beside a chief": ({"chief": [C], "worker": [A, B]}, worker(1), Cluster((C, A, B), 2)),
}


@pytest.mark.parametrize("given, task, expected", CLUSTERS.values(), ids=CLUSTERS)
def test_read_cluster(given, task, expected):
    cluster = read_cluster(configured(given, task))
    assert cluster == expected
    assert cluster.is_chief == (expected.index == 0)


def test_no_cluster():
    assert read_cluster({}) is read_cluster({"TF_CONFIG": " "}) is None


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


@pytest.mark.parametrize("environment, expected", WRONG.values(), ids=WRONG)
def test_tf_config_that_cannot_work(environment, expected):
    with refused(expected, "TF_CONFIG", "Received: "):
        read_cluster(environment)
