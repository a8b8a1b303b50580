"""How steps are compared: on scripted times, and with contenders on tiny models."""

import contextlib
import dataclasses

import pytest

from benchmarks import common, contender
from benchmarks.speed import contenders, training
from model_formats.encoders import ENCODERS
from tests.support.benchmark_programs import table
from tests.support.tiny_models import SIZES


def install(folder, *names):
    """What pip leaves of packages, as far as their names go."""
    for name in names:
        information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    return str(folder)


def test_cuda_libraries_of_two_releases_are_refused(tmp_path):
    one = install(tmp_path / "one", "torch", "nvidia-cudnn-cu12", "nvidia-nccl-cu12", "nvidia-x")
    common.refuse_mixed_cuda(one)
    both = install(tmp_path / "both", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu13")
    with pytest.raises(SystemExit) as ended:
        common.refuse_mixed_cuda(both)
    message = str(ended.value)
    assert message.startswith("error: the extras bench and gpu must be installed into separate")
    assert message.endswith("Received: nvidia-cudnn-cu12 and nvidia-cudnn-cu13")


class Scripted:
    """A contender whose times are given."""

    seconds_of = {
        ("project", "auto"): 2.0,
        ("project", "off"): 3.0,
        ("kerashub", "on"): 5.0,
        ("kerashub", "off"): 4.0,
        ("transformers", "off"): 6.0,
    }
    alive, most_alive = [], []

    def __init__(self, kind, task):
        self.kind, self.task, self.seconds, self.memory = kind, task, [], 5.0
        self.alive.append(self)
        self.most_alive.append(sum(c.kind in training.PEERS | {"project": ""} for c in self.alive))

    def run(self, steps):
        assert self in self.alive
        self.seconds.append(self.seconds_of[self.kind, self.task.get("xla", "off")])
        return self.seconds[-1]

    def close(self):
        self.alive.remove(self)


def test_ratios_to_the_projects_time(monkeypatch, capsys):
    monkeypatch.setattr(contenders, "start", Scripted)
    monkeypatch.setattr(training.importlib.util, "find_spec", lambda name: True)
    flags = ["--precision=float32", "--rounds=5"]
    training.main(common.parser_of("", training.FLAGS, 9).parse_args(flags))
    out = capsys.readouterr().out
    ratio = training.HEADINGS.index("its time / this project's")
    assert {row[0]: row[ratio] for row in table(out)} == {
        "this project, XLA auto": "1.00",
        "this project, XLA off": "1.50",
        "KerasHub, fit, XLA off": "2.00",  # the faster of the two
        "transformers, eager": "3.00",
    }
    assert "KerasHub, fit, XLA on took 1.25 times" in out
    assert Scripted.alive == [] and max(Scripted.most_alive) <= 4


KINDS = {"project": "keras", "kerashub": "keras_hub", "transformers": "transformers"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ("bert", "albert"))
@pytest.mark.parametrize("precision", ("float32", "bfloat16"))
def test_each_runs(kind, model, precision):
    # Each in its own process, as in a benchmark: torch's Triton crashes beside TensorFlow.
    pytest.importorskip(KINDS[kind])
    sizes = {**SIZES, **({"embedding_size": 16} if model == "albert" else {})}
    task = {
        "model": model, "config": dataclasses.asdict(ENCODERS[model].config(**sizes)),
        "batch": 4, "length": 16, "predictions": 3, "precision": precision, "xla": "off",
    }  # fmt: skip
    with contextlib.closing(contenders.start(kind, task)) as running:
        running.run(2)
    assert running.seconds[0] > 0 and running.memory > 0


def test_a_contender_that_fails_says_why():
    with pytest.raises(contender.ContenderFailed, match="KeyError: 'nonsense'") as failure:
        contenders.start("nonsense", {})
    assert failure.value.last_line == "KeyError: 'nonsense'"
    assert not failure.value.out_of_memory
    assert contender.ContenderFailed("", -9).out_of_memory
    assert contender.ContenderFailed("", 1).last_line == "exit status 1"
