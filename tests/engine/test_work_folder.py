"""Files left by a removed run never get into another run."""

import concurrent.futures
import contextlib
import os
import shutil
import time
from unittest import mock

import pytest

from create_pretraining_data.engine.plain_text import recognise, write_plain
from create_pretraining_data.engine.work_folder import MANIFEST, remove_work_folder
from run_scripts import create_data_plan
from run_scripts.create_data import main
from run_scripts.create_data_plan import unpack_once
from tests.support.create_data_runs import KILLS, arguments, contents, run, start

pytestmark = pytest.mark.usefixtures("small")
OTHER = "--random_seed=3"


@pytest.fixture(scope="module")
def killed(corpus, tmp_path_factory):
    """A folder with a run of text.txt.gz that was killed in its second pass."""
    output = tmp_path_factory.mktemp("killed") / "out"
    text = f"--input_file={corpus}/text.txt.gz"
    start(corpus, output, text, preparation=KILLS["in pass 2"]).communicate()
    return output


@pytest.fixture
def work(killed, tmp_path):
    """The work folder of a copy of it."""
    shutil.copytree(killed, tmp_path / "out")
    return tmp_path / "out" / ".ko.tfrecord.work"


@pytest.mark.parametrize("flags", [(), (OTHER,)], ids=" ".join)
def test_files_without_a_manifest_are_not_taken_up(corpus, whole, tmp_path, work, flags):
    assert {"chunk-000010", "input-00000"} <= set(os.listdir(work))
    (work / MANIFEST).unlink()
    for path in work.glob("chunk-00000?"):  # had they been taken up, it would show
        shutil.copy(work / "chunk-000010", path)
    (work / "input-00000").write_text("다른 글\n")
    made = run(corpus, work.parent, f"--input_file={corpus}/text.txt.gz", *flags)
    assert (made.records == whole.records) == (OTHER not in flags)
    assert made.records == run(corpus, tmp_path / "new", *flags).records


def test_an_unpacked_input_without_its_json_is_made_again(corpus, whole, work):
    for path in work.glob("chunk-00000?*"):
        path.unlink()
    text = (work / "input-00000").read_bytes()
    (work / "input-00000").write_bytes(text[: len(text) // 2])
    (work / "input-00000.json").unlink()
    assert run(corpus, work.parent, f"--input_file={corpus}/text.txt.gz").records == whole.records


def test_tasks_that_start_at_once_unpack_once(corpus, tmp_path, monkeypatch):
    """And remove what a killed one left, which may be as large as the text."""
    left = tmp_path / f".input-00000.{'0' * 16}.partial"
    left.touch()
    source, calls = recognise(str(corpus / "text.txt.gz")), []

    def write_slowly(*args):
        calls.append(left.exists())
        time.sleep(0.2)
        return write_plain(*args)

    monkeypatch.setattr(create_data_plan, "write_plain", write_slowly)
    with concurrent.futures.ThreadPoolExecutor(3) as tasks:
        found = list(tasks.map(unpack_once, [source] * 3, [str(tmp_path / "input-00000")] * 3))
    assert calls == [False] and len(set(found)) == 1


class Death(BaseException):
    """Ends a run as kill does: nothing is put in order."""


def test_killed_while_the_folder_is_removed(tmp_path, monkeypatch, killed):
    """At each of its files: the manifest outlives everything that it lists."""
    work, source = tmp_path / "work", killed / ".ko.tfrecord.work"
    for last in range(1, 1 + len(os.listdir(source))):
        shutil.copytree(source, work)
        unlink = mock.Mock(wraps=os.unlink, side_effect=[*[mock.DEFAULT] * last, Death])
        with monkeypatch.context() as patch, contextlib.suppress(Death):
            patch.setattr(os, "unlink", unlink)
            patch.setattr(os, "remove", unlink)
            remove_work_folder(str(work))
        left = os.listdir(work) if work.exists() else []
        assert MANIFEST in left or all(name.endswith(".lock") for name in left), last
        shutil.rmtree(work, ignore_errors=True)
    assert last > 20 and not left


def test_killed_while_the_folder_is_removed_then_other_settings(
    corpus, whole, tmp_path, monkeypatch
):
    """The records are there, so what is left of the folder is of no use to anyone."""
    with monkeypatch.context() as patch:
        remove = mock.Mock(wraps=os.remove, side_effect=[*[mock.DEFAULT] * 4, Death])
        patch.setattr("create_pretraining_data.engine.work_folder.os.remove", remove)
        with pytest.raises(Death):
            main(arguments(corpus, tmp_path))
    assert (tmp_path / ".ko.tfrecord.work" / MANIFEST).exists()
    assert run(corpus, tmp_path, OTHER).records != whole.records
    assert run(corpus, tmp_path) == whole == contents(tmp_path)
