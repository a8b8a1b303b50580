"""What the READMEs, with the guides, print as commands or code works, one after the other."""

import configparser
import dataclasses
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from generated_pages.flags import PROGRAMS

from bert_common import VERSION
from bert_tf.checkpoint import save_google_checkpoint
from create_pretraining_data.records.shard_names import expand_output_file
from model_formats.model_folder import REFERENCE_MODEL, ModelFolder
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags
from tests.support.paths import WHEEL, declared
from tests.support.readmes import OWN, PAGES, ROOT, blocks, bring, commands, comment_commands
from tests.support.tiny_models import SIZES, tiny_model, write_config

# Relative to --data_dir where that is given, so no inputs of their own to the parser.
QUESTION_FILES = ("train_file", "predict_file")

# How many updates the main path's model has, by its name in later commands.
STEPS = "model.ckpt-20000"


def made_by(values):
    """The paths that later commands may name: what a program writes that has these flags."""
    if getattr(values, "output_file", None):
        yield from expand_output_file(values.output_file)
    if folder := getattr(values, "output_dir", None):
        yield folder
        for model_type in ("bert", "albert"):
            if getattr(values, f"{model_type}_config_file", None):
                yield f"{folder}/{model_type}_config.json"
        yield f"{folder}/model.ckpt-{getattr(values, 'num_train_steps', None)}"


def inputs_of(values):
    """(flag, path) of all that a command reads."""
    for field in dataclasses.fields(values):
        value = getattr(values, field.name)
        is_relative = field.name in QUESTION_FILES and getattr(values, "data_dir", None)
        is_input = field.metadata["is_input"] or field.name in QUESTION_FILES
        if value and is_input and not is_relative:
            yield from ((field.name, part) for part in value.split(","))


@pytest.mark.parametrize("language", PAGES)
def test_every_command_is_accepted_and_reads_what_is_there(language, tmp_path, monkeypatch):
    """What it reads is the reader's own, this project's, or made by a command before it."""
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["job.flags"])
    made, seen = {*OWN, "output/vectors"}, set()  # the folder is what vectors.sh makes
    for words, _ in (found for page in PAGES[language] for found in commands(page)):
        line = " ".join(words)
        if words[0] == "bash":
            assert (ROOT / words[1]).is_file(), line
            known = [word for word in words[2:] if not word.startswith("-")]
            assert all(path in made for path in known[:2]), line
        elif words[0] == "tensorboard":
            assert words[-1] in made, line
        elif words[0] == "python" and words[2:] and words[2].startswith("benchmarks."):
            program = ROOT / words[2].replace(".", "/")  # a file, or a folder that Python runs
            is_file = program.with_suffix(".py").is_file()
            assert words[1] == "-m" and (is_file or (program / "__main__.py").is_file()), line
        elif words[0] == "python":
            program, *arguments = words[2:] if words[1] == "-m" else words[1:]
            values = parse(PROGRAMS[program], [program, *arguments])
            for flag, path in inputs_of(values):
                there = path in made or os.path.isabs(path) or fnmatch.filter(made, path)
                assert there, f"{line}: --{flag}={path}"
            made.update(made_by(values))
            seen.add(program)
    # Shown in flag files and in vectors.sh alone.
    assert set(PROGRAMS) - seen == {"run_race.py", "run_scripts.tools.average_models"}


def test_both_languages_have_the_same_commands():
    found = [
        sorted(words for page in pages for words, in_block in commands(page) if in_block)
        for pages in PAGES.values()
    ]
    assert found[0] == found[1] and len(found[0]) > 20


def test_every_extra_is_one():
    named = set()
    for path in (*sum(PAGES.values(), ()), *ROOT.glob("*/*.py"), *ROOT.glob("run_scripts/*.sh")):
        text = path.read_text(encoding="utf-8")
        for group in re.findall(r"'\.\[([\w,]+)\]'", text):
            named.update(group.split(","))
    assert named <= set(declared("EXTRAS")) and {"korean", "gpu", "bench"} <= named


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.flags")), ids=lambda path: path.stem)
def test_commands_in_flag_files(path, tmp_path, monkeypatch):
    """They are accepted, and checkpoints of this project have names that it gives."""
    monkeypatch.chdir(tmp_path)
    for words in comment_commands(path):
        if "..." in words:  # the model is another file's
            continue
        program, *arguments = words[1:]
        own = f"--flagfile=run_scripts/flagfiles/{path.stem}"
        # One that continues another job shows that job's command too.
        assert arguments[0].startswith(own) or program == "run_pretraining.py"
        values = parse(PROGRAMS[program], [program, *arguments])
        checkpoint = getattr(values, "init_checkpoint", None) or ""
        if checkpoint.startswith("output/"):
            folder, name = os.path.split(checkpoint)
            job, steps = SHIPPED / f"{os.path.basename(folder)}_pretrain.flags", STEPS
            if job.exists():
                pretrain = parse(PretrainFlags, ["run", f"--flagfile={job}"])
                steps = f"model.ckpt-{pretrain.num_train_steps}"
            assert (name, values.tokenizer_dir) == (steps, folder)


@pytest.mark.parametrize("language", PAGES)
def test_python_blocks(language, tmp_path, monkeypatch):
    """In a folder in which the commands before have made a model."""
    model = tmp_path / "output" / "model"
    shutil.copytree(ROOT / "tests" / "data" / "sample_tokenizer", model)
    sizes = {"vocab_size": 3000, "num_hidden_layers": 1}
    write_config(model / "albert_config.json", "albert", **sizes)
    save_google_checkpoint(tiny_model("albert", **sizes), str(model / STEPS))
    monkeypatch.chdir(tmp_path)
    found = [block for page in PAGES[language] for block in blocks(page, "python")]
    assert found
    for block in found:
        names = {}
        exec(compile(block, "README", "exec"), names)
        assert names["out"]["sequence_output"].shape[-1] == SIZES["hidden_size"]


# Appended to the commands in blocks, by their program, so that it takes seconds instead of hours.
SHORT = {
    "build_vocab.py": ["--vocab_size=3000"],
    "run_pretraining.py": [
        "--num_train_steps=2", "--num_warmup_steps=1", "--train_batch_size=2",
        "--eval_batch_size=2", "--max_eval_steps=1", "--eval_every_steps=0",
        "--gradient_accumulation_steps=2", "--max_train_hours=0",
    ],
    "run_classifier.py": ["--num_train_epochs=1", "--train_batch_size=8"],
    "run_ner.py": ["--num_train_epochs=1", "--train_batch_size=4"],
    "run_squad.py": ["--num_train_epochs=1", "--train_batch_size=4"],
    "run_scripts/run_glue.sh": ["--num_train_epochs=1", "--train_batch_size=8"],
    "run_scripts/run_korean.sh": ["--num_train_epochs=1", "--train_batch_size=8"],
}  # fmt: skip

# Not run: what installs, takes minutes, serves until it is stopped, or needs more machines, an
# extra or the vectors that vectors.sh trains.
NOT_RUN = (
    "pip ", "tensorboard ", "bash run_scripts/quickstart.sh", "bash run_scripts/test.sh",
    "python -m run_scripts.tools.check_devices", "python -m benchmarks.", "python explore.py",
    "python run_pretraining.py --flagfile=job.flags",
    "python export_model.py --model_dir=output/vectors",
    "python export_model.py --model_dir=output/model --output_dir=output/onnx",
    "python run_pretraining.py --flagfile=run_scripts/flagfiles/bert_base_2048_pretrain.flags",
)  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel of this checkout in a new environment; its folder of commands.

    What the wheel depends on comes from the environment of the tests; its packages do not.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    left_out = (".git", ".venv", "output", "build", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*left_out))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-index", "--quiet"]
    run([*pip, "wheel", *offline, "--no-build-isolation", f"--wheel-dir={folder}", source])
    run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"])
    python = folder / "environment" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    run([*pip, "--python", python, "install", *offline, wheel])
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = run([python, "-c", code]).strip()
    # As a path in a .pth file, so that an editable installation there is not followed.
    with open(f"{own}/libraries.pth", "w", encoding="utf-8") as file:
        file.write(sysconfig.get_paths()["purelib"] + "\n")
    return python.parent


def run(words, cwd=None):
    """Runs a command that must end well; returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    words = list(map(str, words))
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
def test_the_wheel_is_whole(installed, tmp_path):
    """Every package, flag file and script; every command starts in an empty folder."""
    (wheel,) = installed.parents[1].glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entries,) = (name for name in names if name.endswith("entry_points.txt"))
        parser = configparser.ConfigParser()
        parser.read_string(archive.read(entries).decode())
    for path in (path for package in (*WHEEL, SHIPPED) for path in (ROOT / package).rglob("*")):
        name = str(path.relative_to(ROOT))
        assert path.suffix not in (".py", ".flags", ".json") or name in names, name
    model = {path.name for path in Path(REFERENCE_MODEL).iterdir()} - {"__pycache__"}
    assert {f"reference_model/{name}" for name in model} <= names
    for command in parser["console_scripts"]:
        if command.endswith(("run-glue", "run-korean")):
            done = subprocess.run([installed / command], capture_output=True, text=True)
            assert done.returncode == 2 and done.stderr.startswith("usage: ")
        else:
            shown = run([installed / command, "--help"], tmp_path)
            assert shown.startswith(f"{command}: ")
            assert run([installed / command, "--version"], tmp_path) == f"{command} {VERSION}\n"
    shown = run([installed / "fill-masks", "--text=나는 학교[MASK] 갔다."], tmp_path).splitlines()
    assert shown[0].startswith(f"note: the model is {installed.parent}/lib")
    assert shown[1] == "나는 학교[MASK] 갔다." and shown[2].count("%") == 5


def as_installed(words, installed):
    """A printed command as it is with the wheel: run_ner.py is run-ner, run_glue.sh run-glue."""
    program = words[1]
    if words[0] == "python" and program == "-m":
        return [installed / "python", *words[1:]]
    assert words[0] in ("python", "bash")
    name = os.path.splitext(os.path.basename(program))[0].replace("_", "-")
    return [installed / name, *words[2:]]


@pytest.mark.slow
@pytest.mark.parametrize("language", PAGES)
def test_shown_output(language):
    """What the README shows after a command is what it prints, up to a per cent."""
    page = PAGES[language][0]
    (shown,) = blocks(page, "text")
    (words,) = (words for words, _ in commands(page) if "--model_dir" not in " ".join(words)
                and words[:3] == ["python", "-m", "run_scripts.tools.fill_masks"])  # fmt: skip
    printed = run([sys.executable, *words[1:]], ROOT).splitlines()[1:]
    split = [re.findall(r"(\S+) (\d+)%", text) for text in (shown, "\n".join(printed))]
    assert shown.splitlines()[0] == printed[0] and len(split[0]) == len(split[1]) == 5
    for (piece, per_cent), (other, number) in zip(*split, strict=True):
        assert piece == other and abs(int(per_cent) - int(number)) <= 1


@pytest.mark.slow
def test_commands_from_an_empty_folder(installed, tmp_path):
    """With the wheel, the sample corpus as the text, and all that a reader brings along."""
    bring(tmp_path)
    ran, seen = [], set()
    for page in PAGES["en"]:
        for words, in_block in commands(page):
            line = " ".join(words)
            if line.startswith(NOT_RUN) or "/pip " in line or "$S/" in line or line in seen:
                continue
            seen.add(line)
            shortened = [*words, *(SHORT.get(words[1], []) if in_block else [])]
            shortened = [word.replace(STEPS, "model.ckpt-2") for word in shortened]
            run(as_installed(shortened, installed), tmp_path)
            ran.append(words[2] if words[1] == "-m" else words[1])
    assert len(ran) > 15
    assert {*SHORT, "run_scripts.tools.fill_masks", "extract_features.py"} <= set(ran)
    for job in ("model", "albert_mini"):
        assert ModelFolder(str(tmp_path / "output" / job)).checkpoint.endswith("model.ckpt-2")
    (block,) = blocks(ROOT / "docs" / "python.md", "python")
    path = tmp_path / "readme.py"
    path.write_text(block.replace(STEPS, "model.ckpt-2") + "print(out['pooled_output'].shape)\n")
    assert "(1, 256)" in run([installed / "python", path], tmp_path)
