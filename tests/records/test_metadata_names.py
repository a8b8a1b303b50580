"""Records with similar names in one folder each have their own description."""

import json
import os
import shutil

import pytest

from create_pretraining_data.records import metadata as sidecar
from create_pretraining_data.records.metadata import read_sidecar, sidecar_names, sidecar_path
from create_pretraining_data.records.reader import count_records, read_format
from create_pretraining_data.records.shard_names import (
    collapse_output_file,
    expand_output_file,
    without_shard,
)
from run_scripts.create_data import main
from tests.support.create_data_runs import arguments, one_line
from tests.support.crosses import slow
from tests.support.refusals import refused

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def make(corpus, tmp_path):
    """A function that makes records of a name, whose masks are to be drawn; returns its status."""

    def call(names, *flags):
        output = ",".join(f"{tmp_path}/{name}" for name in names.split(","))
        flags = f"--output_file={output}", "--masking=dynamic", *flags
        return main(arguments(corpus, tmp_path, *flags))

    return call


def files_of(folder, name):
    return [str(folder / file) for file in expand_output_file(name)]


PAIRS = (
    ("ko.train", "ko.dev", "ko.json", "ko.dev.json"),
    slow("wiki.tfrecord@2", "wiki.tfrecord@3", "wiki.json", "wiki.tfrecord@3.json"),
    ("wiki.tfrecord@2", "wiki.tfrecord", "wiki.json", "wiki.tfrecord.json"),
    ("o.json", "o.tfrecord@2", "o.json.json", "o.tfrecord@2.json"),
    slow("o", "o.tfrecord", "o.json", "o.tfrecord.json"),
)


@pytest.mark.parametrize(("first", "second", "of_first", "of_second"), PAIRS)
def test_two_sets_of_alike_names(make, tmp_path, capsys, first, second, of_first, of_second):
    assert make(first) == 0
    if first == "o.json":  # where it describes nothing
        assert make(second) == 1
        assert "must not conflict with other JSON files" in one_line(capsys.readouterr().err)
        second, of_second = "p.tfrecord@2", "p.json"
    assert make(second, "--max_seq_length=24") == 0
    # Made again, in either order, each overwrites only its own.
    assert make(first, "--random_seed=3") == 0
    assert make(second, "--random_seed=3", "--max_seq_length=24") == 0
    capsys.readouterr()
    assert make(first, "--random_seed=3") == 0
    assert "up to date" in capsys.readouterr().out
    for name, length, file in ((first, 32, of_first), (second, 24, of_second)):
        paths = files_of(tmp_path, name)
        assert {read_format(path).max_seq_length for path in paths} == {length}
        assert {os.path.basename(sidecar_path(path)) for path in paths} == {file}
        assert read_sidecar(paths[0])["examples"] == sum(map(count_records, paths))
    found = {path.name for path in tmp_path.glob("*.json")}
    assert found - {first} == {of_first, of_second}


def test_files_of_one_name_in_two_folders(tmp_path):
    """--output_file=a/x,b/x: both descriptions list both files, under the same name."""
    shards = [{"file": "x", "size": size, "records": size} for size in (3, 5)]
    for folder, shard in zip("ab", shards, strict=True):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_bytes(bytes(shard["size"]))
        text = json.dumps({"kind": sidecar.KIND, "shards": shards})
        (tmp_path / folder / "x.json").write_text(text)
        assert sidecar.described_records(str(tmp_path / folder / "x")) == shard["records"]


def test_a_description_of_nothing_is_written_over(make, tmp_path):
    assert make("ko.train") == 0
    (tmp_path / "ko.train").unlink()
    assert make("ko.dev") == 0
    assert sidecar_path(str(tmp_path / "ko.dev")) == str(tmp_path / "ko.json")
    assert not (tmp_path / "ko.dev.json").exists()


def test_one_of_two_that_share_a_description(make, tmp_path):
    """That of both stays for the other; the one that was made again is no longer in it."""
    assert make("ko.train,ko.dev") == 0
    both = (tmp_path / "ko.json").read_bytes()
    before = read_sidecar(str(tmp_path / "ko.dev"))
    assert make("ko.train", "--max_seq_length=24") == 0
    assert (tmp_path / "ko.json").read_bytes() == both
    assert read_sidecar(str(tmp_path / "ko.dev")) == before
    assert read_format(str(tmp_path / "ko.train")).max_seq_length == 24


def test_each_of_a_list_has_its_own(make, tmp_path):
    assert make("a.tfrecord,b.tfrecord") == 0
    assert make("a.tfrecord,c.tfrecord", "--max_seq_length=24") == 0
    assert {path.name for path in tmp_path.glob("*.json")} == {"a.json", "b.json", "c.json"}
    lengths = [read_format(str(tmp_path / f"{n}.tfrecord")).max_seq_length for n in "abc"]
    assert lengths == [24, 32, 24]


def test_records_that_were_made_before_are_read(make, tmp_path):
    """Of two sets that shared a name the later one is described, as it was."""
    assert make("ko.dev") == 0
    shutil.move(tmp_path / "ko.dev", tmp_path / "old.dev")
    text = (tmp_path / "ko.json").read_text().replace("ko.dev", "old.dev")
    (tmp_path / "old.json").write_text(text)
    (tmp_path / "ko.json").unlink()
    assert read_format(str(tmp_path / "old.dev")).max_seq_length == 32
    assert sidecar_path(str(tmp_path / "old.dev")) == str(tmp_path / "old.json")


def test_what_cannot_be_described_is_refused_first(make, tmp_path, capsys):
    def files():
        return {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    assert make("o.tfrecord") == 0
    before = files()
    capsys.readouterr()
    for name, message, named in (
        ("o.json", "must not be the description of other records", "/o.tfrecord"),
        ("o", "must leave a name for the description", "/o.json"),
    ):
        assert make(name) == 1
        line = one_line(capsys.readouterr().err)
        assert message in line and named in line
    assert files() == before


def test_records_are_not_read_as_json(tmp_path, monkeypatch):
    """They may be larger than the memory."""
    path = tmp_path / "o.json"
    read = []
    monkeypatch.setattr(sidecar.json, "loads", read.append)
    for content in (b"{" + bytes(7) + b"\xff" * 99, b'{\0"a": 1}', b"\x1f\x8b\x08" + bytes(9)):
        path.write_bytes(content)
        os.utime(path, ns=(len(read), hash(content) % 10**9))
        assert not sidecar._is_sidecar(str(path))
    assert read == []
    monkeypatch.undo()
    path.write_text(json.dumps({"kind": sidecar.KIND}))
    assert sidecar._is_sidecar(str(path))


def test_the_names():
    for name in ("a/ko.tfrecord@64", "ko.dev", "ko", "ko@2", "a.b/ko-1"):
        assert {collapse_output_file(path) for path in expand_output_file(name)} == {name}
    files = expand_output_file("a/ko.tfrecord@64")
    assert files[0] == "a/ko-00000-of-00064.tfrecord" and len(files) == 64
    assert {sidecar_names(path) for path in files} == {("a/ko.json", "a/ko.tfrecord@64.json")}
    assert {sidecar_path(path) for path in (*files, "a/ko.tfrecord")} == {"a/ko.json"}
    assert without_shard(files[3]) == "a/ko.tfrecord"
    assert expand_output_file("a@b") == ["a@b"]
    assert expand_output_file("a@2") == ["a-00000-of-00002", "a-00001-of-00002"]
    for bad in ("a@0", "a@100000"):
        with refused("from 1 to 99999"):
            expand_output_file(bad)
