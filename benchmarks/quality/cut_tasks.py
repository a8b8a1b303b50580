"""Writes the tasks that are not used as published: a part of NSMC, KorSTS joined by KLUE-STS.

    python -m benchmarks.quality.cut_tasks --tasks_dir=tasks --output_dir=work/tasks

nsmc-30k: the first 30,000 training reviews, with the whole test part. sts: KorSTS's training part;
as dev its test part; as test KLUE-STS's dev part.
"""

import os
import shutil
from pathlib import Path

from benchmarks.common import flag, launch, write_results
from bert_common.atomic_write import atomic_write
from finetuning.datasets import DATASETS
from finetuning.readers import find_file, read_split

REVIEWS = 30_000


def cut_nsmc(tasks_dir, folder):
    """Writes the folder nsmc-30k; returns its number of training reviews."""
    folder.mkdir(exist_ok=True)
    train, test = (
        find_file(f"ratings_{split}.txt", tasks_dir, "nsmc") for split in ("train", "test")
    )
    lines = Path(train).read_text(encoding="utf-8").rstrip("\n").split("\n")[: REVIEWS + 1]
    with atomic_write(str(folder / "ratings_train.txt")) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    shutil.copyfile(test, folder / "ratings_test.txt")
    return len(lines) - 1


def join_sts(tasks_dir, folder):
    """Writes the folder sts in the format of a user's own files; returns its numbers of pairs."""
    folder.mkdir(exist_ok=True)
    counts = {}
    parts = {"train": ("korsts", "train"), "dev": ("korsts", "test"), "test": ("klue-sts", "dev")}
    for name, (task, split) in parts.items():
        dataset = DATASETS[task]
        pairs, _ = read_split(dataset, split, os.path.join(tasks_dir, dataset.folder))
        rows = [f"{pair.text}\t{pair.second}\t{pair.label}\n" for pair in pairs]
        with atomic_write(str(folder / f"{name}.tsv")) as file:
            file.write("".join(["sentence1\tsentence2\tscore\n", *rows]).encode())
        counts[f"sts_{name}"] = len(rows)
    return counts


def main(arguments):
    """Writes the folders, then their numbers into eval_results.txt."""
    tasks_dir, folder = arguments.tasks_dir, arguments.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    counts = {"nsmc_30k": cut_nsmc(tasks_dir, folder / "nsmc-30k")}
    write_results(folder, {**counts, **join_sts(tasks_dir, folder / "sts")})


if __name__ == "__main__":
    flags = {"tasks_dir": flag(str, "the tasks' folders, as published"), "output_dir": Path}
    launch(main, __doc__, flags)
