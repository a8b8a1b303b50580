"""Answers questions about a GPU that is available for minutes; open first_look first.

Each script runs in a checkout without preparation, should end within four minutes on a large card,
prints its table last, and writes JSON with --report. It also runs on a CPU, on a tiny model, so
that it can be tried beforehand. The most valuable question is first:

    python -m benchmarks.gpu.first_look              Does the card compute what a CPU computes?
    python -m run_scripts.tools.check_devices        Do all strategies, precisions and options?
    python -m benchmarks.gpu.killed_training         Does a training survive kill -9?
    python -m benchmarks.gpu.steps                   How fast are steps, beside torch's?
    python -m benchmarks.gpu.steps --vary            Which attention, dropout, XLA flag is fastest?
    python -m benchmarks.speed.devices               Where does a step's time go, what fits?
    python -m benchmarks.gpu.minutes                 What does a model learn in these minutes?
"""
