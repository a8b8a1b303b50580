"""Every input is without tf.data's tuner, whose thread would hold up the end of a program."""

import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, set_options, training_dataset
from tests.support.record_files import FORMAT, make_files
from tests.support.tiny_models import make_examples, tiny_model, training_config

CONFIG = tiny_model().config


def training(folder):
    files = make_files(folder, [8])
    return training_dataset(BatchPlan(files, FORMAT, CONFIG, 4, 1))


def evaluation(folder):
    return evaluation_dataset(make_files(folder, [8]), FORMAT, CONFIG, 4, 2)


def fine_tuning(folder):
    config = training_config(size=4, bucket_boundaries=(32,))
    return make_examples(8).batches(tf.distribute.get_strategy(), config, 0)


@pytest.mark.parametrize("make", (training, evaluation, fine_tuning))
def test_an_input_has_no_tuner(tmp_path, make):
    dataset = make(tmp_path)
    assert dataset.options().autotune.enabled is False
    assert len(list(dataset.take(2))) == 2


@pytest.mark.parametrize("threads", (None, 3))
def test_threads_of_its_own(threads):
    dataset = set_options(tf.data.Dataset.range(3), threads)
    assert dataset.options().threading.private_threadpool_size == threads
    assert [int(number) for number in dataset] == [0, 1, 2]
