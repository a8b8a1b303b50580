"""Runs of a made ledger."""

from benchmarks.reference.ledger import Machine, Run

ONE = Machine("CPU one", 2, 7.6)


def make_run(name, scores, machine=ONE, seconds=60.0, command=None):
    """A `Run` with these scores; the other fields are the same for all."""
    return Run(
        name=name, command=command or f"python run_classifier.py --output_dir=output/{name}",
        machine=machine, seed=1, seconds=seconds, cpu_seconds=2 * seconds, memory_gib=1.25,
        scores=scores, date="2026-01-31", code="0123456789ab",
    )  # fmt: skip
