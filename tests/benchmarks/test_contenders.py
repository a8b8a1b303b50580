"""How steps are compared: on scripted times, and with contenders on tiny models."""

import contextlib
import dataclasses
import math

import pytest

from benchmarks import common, contender
from benchmarks.speed import contenders, training
from benchmarks.speed.contender_steps import matrix_products
from tests.support.benchmark_programs import table
from tests.support.tiny_models import SIZES

KINDS = ("bert", "albert")


def tiny_config(model):
    """The sizes, as a configuration file holds them."""
    return {**SIZES, "embedding_size": 16} if model == "albert" else SIZES


def tiny_task(model="bert", **changes):
    config = common.CONFIGS[model](**tiny_config(model))
    shape = {"batch": 4, "length": 16, "predictions": 3}
    task = {"model": model, "config": dataclasses.asdict(config), **shape}
    return {**task, "precision": "float32", "xla": "off", **changes}


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


def call_main(module, capsys, *arguments):
    """What a program prints."""
    module.main(common.parser_of("", module.FLAGS, 9).parse_args(arguments))
    return capsys.readouterr().out


class Scripted:
    """A contender whose times are given; the machine is `drift` times slower every round."""

    seconds_of = {
        ("project", "auto"): 2.0,
        ("project", "off"): 3.0,
        ("kerashub", "on"): 5.0,
        ("kerashub", "off"): 4.0,
        ("transformers", "off"): 6.0,
        ("products", "on"): 1.5,
        ("products", "off"): 1.0,
        ("update", "on"): 0.4,
        ("update", "off"): 0.5,
        ("matrix", "off"): 0.01,
    }
    drift = 2.0

    def __init__(self, kind, task):
        self.kind, self.task, self.seconds, self.memory = kind, task, [], 5.0
        self.alive.append(self)
        self.most_alive.append(sum(c.kind in training.PEERS | {"project": ""} for c in self.alive))

    def run(self, steps):
        assert self in self.alive
        now = len(self.seconds)
        seconds = self.seconds_of[self.kind, self.task.get("xla", "off")]
        self.seconds.append(seconds * self.drift**now)
        return self.seconds[-1]

    def close(self):
        self.alive.remove(self)


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(Scripted, "alive", [], raising=False)
    monkeypatch.setattr(Scripted, "most_alive", [], raising=False)
    monkeypatch.setattr(contenders, "start", Scripted)
    monkeypatch.setattr(training.importlib.util, "find_spec", lambda name: True)
    return Scripted


def test_ratios_are_taken_within_a_round(scripted, monkeypatch, capsys):
    # Trial rounds have been run by some contenders and not by others, so drift is per round.
    monkeypatch.setattr(scripted, "drift", 1.0)
    out = call_main(training, capsys, "--precision=float32", "--rounds=5")
    rows = {row[0]: row for row in table(out)}
    ratio = training.HEADINGS.index("its time / this project's")
    assert {name: row[ratio] for name, row in rows.items()} == {
        "this project, XLA auto": "1.00",
        "this project, XLA off": "1.50",
        "KerasHub, fit, XLA off": "2.00",  # the faster of the two
        "transformers, eager": "3.00",
    }
    assert "KerasHub, fit, XLA on took 1.25 times" in out
    # (1.0 + 0.4) / 2.0, the faster of each.
    assert "products alone 1 s, its update alone 0.4 s, together 70% (spread 0%)" in out
    assert f"{2 * matrix_products.MATRIX**3 / 0.01 / 1e9:.0f} GFLOP/s in float32" in out
    assert scripted.alive == []
    assert max(scripted.most_alive) <= 4


@pytest.mark.parametrize("model", KINDS)
def test_products_are_those_of_the_step(model):
    """As many as the layers have, thrice; the operations are those of the formula."""
    task = tiny_task(model)
    compute, operands, given = matrix_products.products_function(task)
    graph = compute.get_concrete_function(operands, given).graph
    count, flops = 0, 0
    for operation in graph.get_operations():
        if operation.type.startswith(("MatMul", "BatchMatMul")):
            (left, _), result = operation.inputs, operation.outputs[0]
            transposed = any(
                operation.get_attr(name)
                for name in ("transpose_a", "adj_x")
                if name in operation.node_def.attr
            )
            inner = left.shape[-2] if transposed else left.shape[-1]
            count, flops = count + 1, flops + 2 * math.prod(result.shape) * inner
    b, t, p = task["batch"], task["length"], task["predictions"]
    h, i, v, layers = 32, 48, 60, 2
    e = 16 if model == "albert" else h
    # A block: keys and values of all tokens, the rest at the positions where it is run.
    once = sum(
        2 * b * t * 2 * h * h + 2 * b * q * (2 * h * h + 2 * h * i) + 4 * b * q * t * h
        for q in [t] * (layers - 1) + [1 + p]
    )
    once += 2 * b * p * (h * e + e * v) + 2 * b * (h * h + h * 2)
    once += 2 * b * t * e * h if model == "albert" else 0
    assert count == 3 * (layers * 8 + 4 + (model == "albert"))
    assert flops == 3 * once


EACH_ONCE = pytest.mark.parametrize(
    "model, precision",
    (
        pytest.param("bert", "float32", marks=pytest.mark.slow),
        ("albert", "bfloat16"),
        pytest.param("bert", "bfloat16", marks=pytest.mark.slow),
        pytest.param("albert", "float32", marks=pytest.mark.slow),
    ),
)


@pytest.mark.slow
@EACH_ONCE
@pytest.mark.parametrize("kind", ("project", "update"))
def test_contenders_run(kind, model, precision):
    run = contenders.KINDS[kind](tiny_task(model, precision=precision))
    assert run(2) > 0


@pytest.mark.slow
@EACH_ONCE
@pytest.mark.parametrize(
    "kind, module", (("kerashub", "keras_hub"), ("transformers", "transformers"))
)
def test_peers_run(kind, module, model, precision):
    # Each in its own process, as in a benchmark: torch's Triton crashes beside TensorFlow.
    pytest.importorskip(module)
    with contextlib.closing(
        contenders.start(kind, tiny_task(model, precision=precision))
    ) as running:
        running.run(2)
    assert running.seconds[0] > 0
    assert running.memory > 0


def test_a_contender_that_fails_says_why():
    with pytest.raises(contender.ContenderFailed, match="KeyError: 'nonsense'") as failure:
        contenders.start("nonsense", {})
    assert failure.value.last_line == "KeyError: 'nonsense'"
    assert not failure.value.out_of_memory
    assert contender.ContenderFailed("", -9).out_of_memory
    assert contender.ContenderFailed("", 1).last_line == "exit status 1"
