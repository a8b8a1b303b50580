"""Compares this project's training step with its peers' steps and with its own matrix products.

    python -m benchmarks.speed.training                                     BERT-base, 8 x 128
    python -m benchmarks.speed.training --model=albert --batch=16 --precision=bfloat16
    python -m benchmarks.speed.training --peers=none --config=FILE          this project alone
    python -m benchmarks.speed.training --devices                           one device against two
    python -m benchmarks.speed.training --baseline=FOLDER --steps=20        another checkout's step

The peers, KerasHub and transformers, come with `pip install -e '.[bench]'`; one that is not
installed is left out. All compute the same: forward with dropout, the losses of masked words and
of sentence pairs, backward, clipping by the global norm, one AdamW update (ALBERT:
LAMB), on the same batch.

The speed of a shared machine drifts, so every contender stays alive in a separate process, they
take turns, and the median of the ratios within a round is reported.
"""

import contextlib
import dataclasses
import importlib.util
import json
import os
import socket
import statistics

from benchmarks.common import (
    DROPOUT,
    add_model_flags,
    argument_parser,
    median_and_spread,
    one_of,
    print_table,
    read_config,
    take_turns,
)
from benchmarks.speed.contender import Contender, ContenderFailed
from benchmarks.speed.contender_steps.matrix_products import MATRIX

PEERS = {"kerashub": "keras_hub", "transformers": "transformers"}  # with their modules
SETTINGS = {
    "project": "this project, XLA {xla}",
    "kerashub": "KerasHub, fit, XLA {xla}",
    "transformers": "transformers, eager",
}
TRIAL_ROUNDS = 3  # to choose the faster of two settings
HEADINGS = [
    "contender", "precision", "s/step", "spread", "examples/s", "its time / this project's",
    "spread", "peak memory GiB",
]  # fmt: skip
CHECKOUT_HEADINGS = ["step of", "s/step", "spread", "steps/s", "time / this checkout's", "spread"]
DEVICE_HEADINGS = ["devices", "s/step", "spread", "time / one device's", "spread"]

OPTIMIZERS = {
    "bert": "AdamW everywhere (KerasHub: keras.optimizers.AdamW, transformers: torch's, fused)",
    "albert": "LAMB here and in KerasHub (keras.optimizers.Lamb); AdamW (torch's, fused) in "
    "transformers, which is less work",
}


def best_of(kind, tasks, rounds, steps):
    """Lets the settings of one contender take turns; only the fastest is kept alive.

    Returns:
        The fastest, and pairs of each of the others, closed, with the ratios of its times to the
        fastest's.
    """
    contenders = [Contender(kind, task) for task in tasks]
    if len(contenders) == 1:
        return contenders[0], []
    times = take_turns(contenders, rounds, steps)
    pairs = sorted(zip(contenders, times, strict=True), key=lambda p: statistics.median(p[1]))
    (best, best_times), *others = pairs
    for contender, _ in others:
        contender.close()
    return best, [(contender, ratios(seconds, best_times)) for contender, seconds in others]


def ratios(times, base):
    """The ratios of two lists of times, round by round."""
    return [a / b for a, b in zip(times, base, strict=True)]


def describe(contender, kind, task, relative):
    """A row of the table."""
    seconds, spread = median_and_spread(contender.seconds[-len(relative) :])
    ratio, ratio_spread = median_and_spread(relative)
    return [
        SETTINGS[kind].format(**task),
        task["precision"],
        f"{seconds:.3g}",
        f"{spread:.0%}",
        f"{task['batch'] / seconds:.3g}",
        f"{ratio:.2f}",
        f"{ratio_spread:.0%}",
        f"{contender.memory:.2f}",
    ]


def compare(task, peers, settings, rounds, steps):
    """Compares all contenders in one precision, and this project in float32.

    At most four processes with a model are alive at a time.

    Args:
        task: see `contenders`, without "xla".
        peers: keys of `PEERS`.
        settings: of this project's --xla.
        rounds, steps: as for `take_turns`.

    Returns:
        Rows of the table, and notes to print under it.
    """
    variants = [{**task, "xla": xla} for xla in ("on", "off")]
    project, others = best_of("project", [{**task, "xla": xla} for xla in settings], rounds, steps)
    rows = [describe(c, "project", c.tasks[0], relative) for c, relative in others]
    notes, rivals = [], {}
    for peer in peers:
        # transformers has no such setting.
        tasks = variants if peer == "kerashub" else variants[-1:]
        try:
            rivals[peer], slower = best_of(peer, tasks, TRIAL_ROUNDS, steps)
        except ContenderFailed as error:
            notes.append(f"{task['precision']}: {peer} failed: {error.last_line}")
            continue
        for loser, relative in slower:
            notes.append(
                f"{task['precision']}: {SETTINGS[peer].format(**loser.tasks[0])} took "
                f"{statistics.median(relative):.2f} times the time of its setting in the table."
            )
    if task["precision"] != "float32":
        float32 = {**task, "precision": "float32", "xla": settings[0]}
        rivals["project"] = Contender("project", float32)
    times = take_turns([project, *rivals.values()], rounds, steps)
    for (peer, rival), seconds in zip(rivals.items(), times[1:], strict=True):
        rows.append(describe(rival, peer, rival.tasks[0], ratios(seconds, times[0])))
        rival.close()
    rows.insert(0, describe(project, "project", project.tasks[0], [1.0] * rounds))
    notes.append(share_of_products(task, project, variants, rounds, steps))
    project.close()
    return rows, notes


def share_of_products(task, project, variants, rounds, steps):
    """A note: which share of the step its matrix products and its update take alone."""
    products, _ = best_of("products", variants, TRIAL_ROUNDS, steps)
    update, _ = best_of("update", variants, TRIAL_ROUNDS, steps)
    kinds = ("float32", "bfloat16")
    matrices = [Contender("matrix", {**task, "precision": kind}) for kind in kinds]
    group = [project, products, update, *matrices]
    times = take_turns(group, rounds, steps)
    shares = [(p + u) / s for s, p, u in zip(*times[:3], strict=True)]
    step, products_s, update_s, *matrices_s = map(statistics.median, times)
    share, spread = median_and_spread(shares)
    for contender in group[1:]:
        contender.close()
    speeds = [f"{2 * MATRIX**3 / seconds / 1e9:.0f}" for seconds in matrices_s]
    return (
        f"{task['precision']}: the step's matrix products alone {products_s:.3g} s, its update "
        f"alone {update_s:.3g} s, together {share:.0%} (spread {spread:.0%}) of the step's "
        f"{step:.3g} s in the same rounds; a bare product of two {MATRIX} x {MATRIX} matrices "
        f"ran at {speeds[0]} GFLOP/s in float32, {speeds[1]} in bfloat16."
    )


def compare_devices(task, rounds, steps):
    """Rows for one device, two devices in one process, two processes, on the same two cores."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    task = {**task, "cores": cores, "environment": {"CUDA_VISIBLE_DEVICES": "-1"}}
    workers = [f"localhost:{port}" for port in free_ports(2)]
    worker_tasks = []
    for i in range(2):
        tf_config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}}
        environment = {**task["environment"], "TF_CONFIG": json.dumps(tf_config)}
        changes = {"cores": cores[i : i + 1], "environment": environment}
        worker_tasks.append({**task, "devices": "multi_worker", **changes})
    contests = {
        "two logical CPUs, MirroredStrategy": {**task, "devices": "mirrored"},
        "two processes, MultiWorkerMirroredStrategy": worker_tasks,
    }
    rows = []
    one = Contender("project", task)
    for name, tasks in contests.items():
        two = Contender("project", tasks)
        times = take_turns([one, two], rounds, steps)
        two.close()
        rows.append([name, *numbers(times[1]), *numbers(ratios(times[1], times[0]))])
    one.close()
    return [["one device", *numbers(one.seconds), "1", ""], *rows]


def compare_checkouts(task, baseline, rounds, steps):
    """Makes rows for this project's step and for another checkout's."""
    names = {"this checkout": None, baseline: baseline}
    contenders = [Contender("project", task, checkout) for checkout in names.values()]
    times = take_turns(contenders, rounds, steps)
    for contender in contenders:
        contender.close()
    for name, seconds in zip(names, times, strict=True):
        speed = 1 / statistics.median(seconds)
        yield [name, *numbers(seconds), f"{speed:.3g}", *numbers(ratios(seconds, times[0]))]


def numbers(values):
    """Median and spread as text."""
    median, spread = median_and_spread(values)
    return f"{median:.3g}", f"{spread:.0%}"


def free_ports(count):
    """Free ports of this machine, all different."""
    with contextlib.ExitStack() as stack:
        servers = [socket.create_server(("localhost", 0)) for _ in range(count)]
        return [stack.enter_context(server).getsockname()[1] for server in servers]


def main():
    """Measures, prints the table and the note under it."""
    parser = argument_parser(__doc__)
    add_model_flags(parser)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--peers", type=one_of(*PEERS, "none"), default=list(PEERS))
    parser.add_argument("--xla", type=one_of("auto", "on", "off"), default=["auto", "off"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=1, help="of each contender in a round")
    parser.add_argument("--devices", action="store_true", help="compare numbers of devices instead")
    parser.add_argument("--baseline", metavar="FOLDER", help="compare with this checkout instead")
    arguments = parser.parse_args()
    if arguments.devices and not hasattr(os, "sched_setaffinity"):
        parser.error("--devices needs Linux: other systems cannot bind a process to cores")
    config = read_config(arguments.model, arguments.config)
    task = {
        "model": arguments.model,
        "config": dataclasses.asdict(config),
        **{name: getattr(arguments, name) for name in ("batch", "length", "predictions")},
    }
    effort = (arguments.rounds, arguments.steps)
    print(
        f"{arguments.config or f'{arguments.model}-base'}, batch {task['batch']} x "
        f"{task['length']}, {task['predictions']} predictions, dropout {DROPOUT}; "
        f"{arguments.rounds} rounds of {arguments.steps} step(s); spread: the distance of the "
        "quartiles over the median.\n",
        flush=True,
    )
    first = {"precision": arguments.precision[0], "xla": arguments.xla[0]}
    if arguments.baseline:
        rows = compare_checkouts({**task, **first}, arguments.baseline, *effort)
        print_table(CHECKOUT_HEADINGS, rows)
        return
    if arguments.devices:
        task |= first
        print_table(DEVICE_HEADINGS, compare_devices(task, *effort))
        print(
            f"{task['precision']}, XLA {task['xla']}; the batch is over all "
            "devices. Every row has the same two cores with one intra-op thread each: a single "
            "process has both (two logical devices share them), each of two processes has one."
        )
        return
    notes = [f"{OPTIMIZERS[arguments.model]}."]
    if "transformers" in arguments.peers:
        notes.append("transformers computes the logits of every position.")
    asked = [peer for peer in arguments.peers if peer != "none"]
    peers = [peer for peer in asked if importlib.util.find_spec(PEERS[peer])]
    notes += [f"{peer} is not installed." for peer in asked if peer not in peers]

    def rows():
        for precision in arguments.precision:
            of_precision, more_notes = compare(
                {**task, "precision": precision}, peers, arguments.xla, *effort
            )
            notes.extend(more_notes)
            yield from of_precision

    print_table(HEADINGS, rows())
    print("\n".join(f"* {note}" for note in notes))


if __name__ == "__main__":
    main()
