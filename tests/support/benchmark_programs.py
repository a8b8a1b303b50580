"""Runs the benchmarks as their authors do: python -m benchmarks.NAME."""

from tests.support.paths import run_python


def run_benchmark(name, *flags):
    """A finished process of a benchmark, with what it printed."""
    return run_python("-m", f"benchmarks.{name}", *flags)


def output_of(name, *flags):
    """What a benchmark prints; it must succeed."""
    done = run_benchmark(name, *flags)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def table(text):
    """The cells of a Markdown table's rows below its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
