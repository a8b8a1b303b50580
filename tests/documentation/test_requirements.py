"""The files of exact versions hold all that setup.py declares; the images install them."""

import importlib.util
import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT, declared

FOLDER = ROOT / "requirements"
FILES = {"cpu.txt": ("korean", "finetune"), "gpu.txt": ("gpu", "korean", "finetune")}


def pinned(name):
    """Canonical name -> version of a file; every line is such a pair, or a comment."""
    found = {}
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            package, version = re.fullmatch(r"([\w.-]+)==([\w.+]+)", line).groups()
            found[canonicalize_name(package)] = version
    return found


def update():
    """The program requirements/update.py, as a module."""
    spec = importlib.util.spec_from_file_location("update", FOLDER / "update.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", FILES)
def test_every_dependency_is_pinned_within_its_range(name):
    """If not: python requirements/update.py"""
    versions, extras = pinned(name), declared("EXTRAS")
    for line in (*declared("DEPENDENCIES"), *(line for e in FILES[name] for line in extras[e])):
        needed = Requirement(line)
        version = versions[canonicalize_name(needed.name)]
        assert needed.specifier.contains(version), f"{line}: {version}"


def test_what_the_program_writes():
    module = update()
    assert {name: tuple(extras.split(",")) for name, extras in module.EXTRAS.items()} == FILES
    given = (("b_c", "2", "url"), ("A", "1.0", "url"), ("own", "1", "dir_info"))
    install = [
        {"metadata": {"name": name, "version": version}, "download_info": {kind: {}}}
        for name, version, kind in given
    ]
    text = module.lines_of(module.versions_of({"install": install}), "korean")
    assert text.splitlines()[2:] == ["A==1.0", "b_c==2"]


@pytest.mark.parametrize("name", FILES)
def test_images_install_these_files(name):
    text = (ROOT / "docker" / name.replace(".txt", ".Dockerfile")).read_text(encoding="utf-8")
    sources = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    assert sources == [f"requirements/{name}", "."]
    # Python of the image: the one that the versions were resolved for.
    python = re.search(r"^FROM python:(\S+)-slim$", text, re.MULTILINE)[1]
    assert python in (FOLDER / name).read_text(encoding="utf-8")
