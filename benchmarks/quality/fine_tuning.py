"""Measures how much length buckets help fine-tuning, on NSMC.

    python -m benchmarks.quality.fine_tuning --model_dir=output --compare=buckets --data_dir=nsmc
    python -m benchmarks.quality.fine_tuning [the same] --compare=cost

buckets: batches by length against batches padded to one length, in turn for each seed: accuracy
and reviews/s (the median over the points of a training's curve, which excludes compilation). cost:
the CPU seconds of whole trainings, short and long, by length and padded, which include compilation.
With --work_dir, an interrupted benchmark can be resumed; flags after `--` are passed to
run_classifier.
"""

import argparse
import resource
import statistics
import tempfile
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from benchmarks.common import print_table, run, whole_numbers
from benchmarks.quality.records import mean_and_error
from bert_tf.training.evaluation import read_results

LENGTH = 128
RATE = "throughput/examples_per_second"


def train(arguments, output, seed, *flags):
    """Fine-tunes and measures unless that is done; returns the numbers in eval_results.txt."""
    if not read_results(output):
        run(
            "run_classifier.py",
            "--task_name=nsmc",
            f"--data_dir={arguments.data_dir}",
            f"--bert_config_file={arguments.model_dir}/bert_config.json",
            f"--tokenizer_dir={arguments.model_dir}",
            f"--init_checkpoint={arguments.model_dir}",
            f"--output_dir={output}",
            "--do_train",
            "--do_eval",
            "--keep_checkpoint_max=1",
            f"--learning_rate={arguments.learning_rate}",
            f"--num_train_epochs={arguments.epochs}",
            f"--random_seed={seed}",
            f"--max_seq_length={LENGTH}",
            "--eval_batch_size=64",
            "--save_summary_steps=20",
            *flags,
            *arguments.flags,
        )
    return read_results(output)


def rate_of(output):
    """The median of the examples per second over a training's curve."""
    events = EventAccumulator(str(output), size_guidance={"tensors": 0})  # 0: all points
    events.Reload()
    # Without the first half, in which lengths are compiled.
    rates = [float(make_ndarray(point.tensor_proto)) for point in events.Tensors(RATE)]
    return statistics.median(rates[len(rates) // 2 :])


def compare_buckets(arguments, work_dir):
    """Prints two rows, and the ratios of their speeds."""
    rates, scores = {"auto": [], "none": []}, {"auto": [], "none": []}
    for seed in arguments.seeds:
        for way in rates:
            output = work_dir / f"buckets_{way}_{seed}"
            results = train(arguments, output, seed, f"--bucket_boundaries={way}")
            rates[way].append(rate_of(output))
            scores[way].append(results["eval_accuracy"])
    rows = []
    for way, name in (("auto", "by length"), ("none", "padded")):
        mean, error = mean_and_error(scores[way])
        middle = statistics.median(rates[way])
        spread = (max(rates[way]) - min(rates[way])) / middle
        rows.append([name, f"{middle:.0f}", f"{spread:.0%}", f"{mean:.4f}", f"{error:.4f}"])
    print_table(["batches", "reviews/s", "spread", "accuracy", "standard error"], rows)
    pairs = zip(rates["auto"], rates["none"], strict=True)
    ratios = ", ".join(f"{fast / slow:.2f}" for fast, slow in pairs)
    print(f"\nreviews/s, by length over padded, for each seed: {ratios}")
    pairs = zip(scores["auto"], scores["none"], strict=True)
    accuracies = ", ".join(f"{one:.4f} and {other:.4f}" for one, other in pairs)
    print(f"accuracy, by length and padded, for each seed: {accuracies}")


def cpu_seconds():
    """The CPU time of all programs run so far."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def compare_cost(arguments, work_dir):
    """Prints a row for each number of updates: the medians over the seeds, run in turn."""
    rows = []
    for steps in arguments.updates:
        seconds = {"auto": [], "none": []}
        for seed in arguments.seeds:
            for way in seconds:
                output = work_dir / f"cost_{way}_{steps}_{seed}"
                flags = (f"--bucket_boundaries={way}", f"--train_step={steps}", "--nodo_eval")
                before = cpu_seconds()
                train(arguments, output, seed, *flags)
                seconds[way].append(cpu_seconds() - before)
        auto, none = (statistics.median(seconds[way]) for way in ("auto", "none"))
        spread = max((max(times) - min(times)) / min(times) for times in seconds.values())
        rows.append(
            [f"{steps:,}", f"{auto:.1f}", f"{none:.1f}", f"{auto / none:.2f}", f"{spread:.0%}"]
        )
    print_table(["updates", "by length, CPU s", "padded, CPU s", "ratio", "spread"], rows)


COMPARE = {"buckets": compare_buckets, "cost": compare_cost}


def main():
    """Reads the command line and prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True, help="an --output_dir of run_pretraining")
    parser.add_argument("--data_dir", required=True, help="of NSMC")
    parser.add_argument("--compare", choices=tuple(COMPARE), required=True)
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    parser.add_argument("--updates", type=whole_numbers, default=[6, 937])
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--work_dir", type=Path, help="to resume from; else a temporary folder")
    parser.add_argument("flags", nargs="*", help="of run_classifier, after --")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        COMPARE[arguments.compare](arguments, arguments.work_dir or Path(temporary))


if __name__ == "__main__":
    main()
