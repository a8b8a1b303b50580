"""Files appear whole or not at all; an error names the file that was to be written."""

import errno
import os
import pickle

import pytest

from bert_common.atomic_write import atomic_write, remove_partial_files


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["file"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """After a power failure, a name without contents would pass for finished work."""
    path, synced = tmp_path / "file", []
    fsync = os.fsync

    def note(descriptor):
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", note)
    with atomic_write(path) as file:
        file.write(b"new")
    assert synced == [(3, False)] and path.read_bytes() == b"new"


def full_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "name, action, number, named",
    (
        ("file", full_disk, errno.ENOSPC, "file"),
        ("missing/file", None, errno.ENOENT, "missing/file"),
        ("folder", None, errno.EISDIR, "folder"),
        ("file", lambda: os.listdir("/missing/other"), errno.ENOENT, "/missing/other"),
    ),
)
def test_an_error_names_the_file(tmp_path, name, action, number, named):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as found, atomic_write(tmp_path / name):
        if action:
            action()
    assert (found.value.errno, found.value.filename) == (number, str(tmp_path / named))
    assert os.listdir(tmp_path) == ["folder"]
    assert pickle.loads(pickle.dumps(found.value)).filename == found.value.filename


def test_errors_without_a_number_stay_as_they_are(tmp_path):
    with pytest.raises(OSError, match="^a library's$") as found, atomic_write(tmp_path / "file"):
        raise OSError("a library's")
    assert found.value.filename is None and not os.listdir(tmp_path)


def test_what_another_program_writes_in_one_of_the_folders_stays(tmp_path):
    names = [f".{name}.{'0' * 16}.partial" for name in ("a.x", "b.x")]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    remove_partial_files([f"{tmp_path}/one/a.x", f"{tmp_path}/two/b.x"])
    assert [os.listdir(tmp_path / folder) for folder in ("one", "two")] == [names[1:], names[:1]]
