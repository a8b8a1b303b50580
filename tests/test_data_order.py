"""The order of examples goes on from where it was, whatever the settings are then."""

import pytest
from jobs import NO_DROPOUT, Job, arrays, spoken_lines

from bert_tf.data_order import DataOrder


def test_the_same_settings_keep_the_order():
    order = DataOrder(0, 0, 8, 1, 40)
    assert order.continued(10, 8, 1, 40) is order
    assert order.examples_before(10) == 80


@pytest.mark.parametrize("settings", ((4, 1, 40), (8, 2, 40), (8, 1, 20)))
def test_other_settings_begin_behind_what_was_seen(settings):
    order = DataOrder(0, 0, 8, 1, 40).continued(10, *settings)
    assert order == (10, 80, *settings)
    # And once more, in the middle of that part.
    again = order.continued(13, 16, 3, 40)
    assert again == (13, 80 + 3 * settings[0], 16, 3, 40)
    assert again.examples_before(14) == again.position + 16


def test_a_run_that_goes_on_with_another_batch(tmp_path, capsys):
    """It is told, goes on behind the examples seen, and remembers where its order began."""
    job = Job(tmp_path, **NO_DROPOUT)
    seed = 12345
    assert job.run(num_train_steps=3, train_batch_size=8) == 0
    assert spoken_lines(capsys.readouterr().err) == []
    assert arrays(job.output, 3)["data_order"].tolist() == [0, 0, 8, seed, 40]
    assert job.run(num_train_steps=5, train_batch_size=4) == 0
    (line,) = spoken_lines(capsys.readouterr().err)
    assert line == (
        "warning: --train_batch_size was 8 and is 4: the order of examples is another one from "
        "step 3 on, behind the 24 examples seen so far"
    )
    assert arrays(job.output, 5)["data_order"].tolist() == [3, 24, 4, seed, 40]
    assert job.run(num_train_steps=7, train_batch_size=4, input_file=job.files[0]) == 0
    (line,) = spoken_lines(capsys.readouterr().err)
    assert "the number of records was 40 and is 20" in line and "behind the 32 examples" in line
    assert job.run(num_train_steps=8, train_batch_size=4, input_file=job.files[0]) == 0
    assert spoken_lines(capsys.readouterr().err) == []
    assert arrays(job.output, 8)["data_order"].tolist() == [5, 32, 4, seed, 20]
