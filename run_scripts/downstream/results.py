"""Says what the results of an evaluation are worth: their spread over seeds, or a warning."""

import os
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from bert_common.atomic_write import atomic_write
from run_scripts.flags.finetune import TRAIN_PART, FinetuneFlags

# A result must exceed the trivial baseline by more than this share of the highest result, or a
# warning says so.
LEAST_GAIN = 0.002

# The correlation of a thousand unrelated pairs is seldom higher.
LEAST_CORRELATION = 0.05
CORRELATIONS = ("pearson", "spearman", "matthews")


def show_seeds(flags: FinetuneFlags, results: Sequence[Mapping[str, float]]) -> None:
    """Writes and prints the mean and standard deviation of every result over the seeds."""
    path = os.path.join(flags.output_dir, "seeds.tsv")
    names = [name for name in results[0] if name not in ("global_step", "examples")]
    with atomic_write(path) as file:
        seeds = [str(flags.random_seed + i) for i in range(len(results))]
        file.write("\t".join(["name", "mean", "standard deviation", *seeds]).encode() + b"\n")
        for name in names:
            numbers = np.array([result[name] for result in results])
            cells = [numbers.mean(), numbers.std(ddof=1), *numbers]
            file.write("\t".join([name, *(f"{cell:.6f}" for cell in cells)]).encode() + b"\n")
            print(f"  {name} = {cells[0]:.4f} (standard deviation {cells[1]:.4f})")
    print(f"{len(results)} seeds: written to {path}")


def warn_of_baseline(
    best_by: tuple[str, bool], results: Mapping[str, float], weights_classes: bool
) -> None:
    """Warns of a model that is no better than its task's baseline, which needs none.

    `results` includes the baseline's; `weights_classes` says whether --class_weights may help.
    """
    metric, higher_is_better = best_by[0].removeprefix("eval_"), best_by[1]
    baseline = results.get(f"baseline_{metric}")
    names = (f"eval_{metric}", f"{TRAIN_PART}_{metric}")
    name = next((name for name in names if name in results), None)
    if baseline is None or name is None:
        return
    gain = results[name] - baseline if higher_is_better else baseline - results[name]
    highest = 100 if max(results[name], baseline) > 1 else 1  # run_squad's scores are in per cent
    if gain <= highest * (LEAST_CORRELATION if metric in CORRELATIONS else LEAST_GAIN):
        warnings.warn(
            f"{name} is {results[name]:.4f}, no better than without a model "
            f"({baseline:.4f}). Likely: too few updates (more --num_train_epochs), first updates "
            "that are too large (--warmup_proportion=0.5, then a lower --learning_rate), "
            f"{'uneven classes (--class_weights=balanced), ' if weights_classes else ''}or text "
            'that the vocabulary has no tokens for; see "Fine-tuning" in docs/troubleshooting.md',
            stacklevel=2,
        )
