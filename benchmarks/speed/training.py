"""Compares this project's training step with its peers' steps.

    python -m benchmarks.speed.training                                     BERT-base, 8 x 128
    python -m benchmarks.speed.training --model=albert --batch=16 --precision=bfloat16
    python -m benchmarks.speed.training --peers=none --config=FILE          this project alone

The peers, KerasHub and transformers, are installed by `pip install -e '.[bench]'`; missing peers
are omitted. All compute the same on the same batch: forward pass with dropout, masked-word and
sentence-pair losses, backward pass, clipping by the global norm, one AdamW update (LAMB for
ALBERT).

The speed of a shared machine drifts, so all contenders stay alive in separate processes and take
turns, and the median of the ratios within a round is reported.
"""

import dataclasses
import importlib.util
import statistics

from benchmarks.common import cells, flag, launch, print_table, ratios, some_of
from benchmarks.contender import ContenderFailed
from benchmarks.speed import contenders
from benchmarks.speed.contender_steps.shared import DROPOUT, MODEL_FLAGS, read_config

PEERS = {"kerashub": "keras_hub", "transformers": "transformers"}  # name -> module
SETTINGS = {
    "project": "this project, XLA {xla}",
    "kerashub": "KerasHub, fit, XLA {xla}",
    "transformers": "transformers, eager",
}
TRIAL_ROUNDS = 3  # rounds to choose the fastest setting
HEADINGS = [
    "contender", "precision", "s/step", "spread", "examples/s", "its time / this project's",
    "spread", "peak memory GiB",
]  # fmt: skip

OPTIMIZERS = {
    "bert": "AdamW everywhere (KerasHub: keras.optimizers.AdamW, transformers: torch's, fused)",
    "albert": "LAMB here and in KerasHub (keras.optimizers.Lamb); AdamW (torch's, fused) in "
    "transformers, which is less work",
}


FLAGS = {
    **MODEL_FLAGS,
    "batch": 8,
    "length": 128,
    "predictions": 20,
    "peers": some_of(PEERS, (*PEERS, "none")),
    "xla": some_of(("auto", "off"), ("auto", "on", "off")),
    "steps": flag(1, "of each contender in a round"),
}


def best_of(kind, tasks, rounds, steps):
    """Lets the settings of one contender take turns, and keeps only the fastest alive.

    Returns:
        The fastest, and a list of pairs of a closed contender and the ratios of its times to the
        fastest's.
    """
    running = [contenders.start(kind, task) for task in tasks]
    times = contenders.in_turns(running, rounds if len(running) > 1 else 0, steps)
    pairs = sorted(zip(running, times, strict=True), key=lambda p: statistics.median(p[1] or [0]))
    (best, best_times), *others = pairs
    for contender, _ in others:
        contender.close()
    return best, [(contender, ratios(seconds, best_times)) for contender, seconds in others]


def describe(contender, relative):
    """Returns a row of the table."""
    task = contender.task
    seconds = contender.seconds[-len(relative) :]
    return [
        SETTINGS[contender.kind].format(**task), task["precision"], *cells(seconds),
        f"{task['batch'] / statistics.median(seconds):.3g}", *cells(relative, ".2f"),
        f"{contender.memory:.2f}",
    ]  # fmt: skip


def compare(task, peers, settings, rounds, steps):
    """Compares all contenders in one precision, and this project in float32.

    At most four processes with a model are alive at a time.

    Args:
        task: see `contenders`, without "xla".
        peers: keys of `PEERS`.
        settings: the values of --xla to compare for this project.
        rounds, steps: the number of rounds, and of each contender's steps in a round.

    Returns:
        Rows of the table, and notes to print under it.
    """
    variants = [{**task, "xla": xla} for xla in ("on", "off")]
    project, others = best_of("project", [{**task, "xla": xla} for xla in settings], rounds, steps)
    rows = [describe(*pair) for pair in others]
    notes, rivals = [], []
    for peer in peers:
        # transformers has no XLA setting.
        tasks = variants if peer == "kerashub" else variants[-1:]
        try:
            rival, slower = best_of(peer, tasks, TRIAL_ROUNDS, steps)
        except ContenderFailed as error:
            notes.append(f"{task['precision']}: {peer} failed: {error.last_line}")
            continue
        rivals.append(rival)
        for loser, relative in slower:
            notes.append(
                f"{task['precision']}: {SETTINGS[peer].format(**loser.task)} took "
                f"{statistics.median(relative):.2f} times the time of its setting in the table."
            )
    if task["precision"] != "float32":
        float32 = {**task, "precision": "float32", "xla": settings[0]}
        rivals.append(contenders.start("project", float32))
    own, *theirs = contenders.in_turns([project, *rivals], rounds, steps)
    for rival, seconds in zip(rivals, theirs, strict=True):
        rows.append(describe(rival, ratios(seconds, own)))
        rival.close()
    rows.insert(0, describe(project, [1.0] * rounds))
    project.close()
    return rows, notes


def main(arguments):
    """Measures all contenders, and prints the table and the notes below it."""
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
    launch(main, __doc__, FLAGS, rounds=9)
