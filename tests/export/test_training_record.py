"""How a model was trained is recorded stage by stage, whichever program trained it."""

import json

import pytest
from model_folders import write_folder

from bert_common.errors import InputError
from model_formats.training_record import (
    add_counts,
    earlier_stages,
    read_stages,
    stages_of,
    write_stages,
)

FIRST = {"program": "pre-training", "settings": {"learning_rate": 1e-4}}
SECOND = {"program": "fine-tuning", "settings": {}}


def test_a_run_follows_what_it_starts_from(tmp_path):
    write_folder(tmp_path / "first")
    write_stages(tmp_path / "first", [FIRST])
    checkpoint = str(tmp_path / "first" / "model.ckpt-3")
    for start in (checkpoint, str(tmp_path / "first")):
        assert earlier_stages(str(tmp_path / "new"), start) == [FIRST]
    assert earlier_stages(str(tmp_path / "new"), None) == []
    # One that resumes: its own stage is the last of the folder, whatever it began with.
    write_folder(tmp_path / "second")
    write_stages(tmp_path / "second", [FIRST, SECOND])
    assert earlier_stages(str(tmp_path / "second"), None) == [FIRST]
    assert stages_of(str(tmp_path / "second" / "best" / "model.ckpt-3")) == [FIRST, SECOND]


def test_nothing_is_written_where_nothing_is_known(tmp_path):
    write_stages(tmp_path, [])
    assert list(tmp_path.iterdir()) == [] and read_stages(tmp_path) == []


@pytest.mark.parametrize("content", [{}, [1], "x"])
def test_a_record_of_something_else(content, tmp_path):
    (tmp_path / "training.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="training.json must hold a list of objects"):
        read_stages(tmp_path)


def test_counts_of_several_data_sets():
    one = {"documents": 3, "sentences": 5, "words": "x", "settings": {}}
    assert add_counts([one]) == {"documents": 3, "sentences": 5}
    assert add_counts([one, {"documents": 4}]) == {"documents": 7}
    assert add_counts([one, {}]) == add_counts([]) == {}
