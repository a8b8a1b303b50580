"""Jobs of run_similarity on generated tables."""

import numpy as np

from run_scripts import similarity
from tests.support.programs import ClassifierJob
from tests.support.task_data import BAD, GOOD, sentence, write_table


class SimilarityJob(ClassifierJob):
    """run_similarity on tables in the folder data."""

    name, main = "run_similarity.py", staticmethod(similarity.main)


HEADERS = {
    "scored": ["text", "second", "score"],
    "pairs": ["text", "second"],
    "triples": ["text", "second", "third"],
    "texts": ["text"],
}


def rows_of(form, count, seed=0):
    """Sentences that are good or bad; those of the same kind belong together."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        one, other = (GOOD, BAD)[:: 1 if number % 2 else -1]
        texts = [sentence(draw, kind) for kind in (one, one, other)]
        alike = bool(draw.integers(2))
        scored = [texts[0], texts[1 if alike else 2], 5 * alike]
        rows.append(scored if form == "scored" else texts[: len(HEADERS[form])])
    return rows


def write(job, train="scored", dev="scored", **others):
    """The files of a job: split -> what it consists of."""
    job.data.mkdir(exist_ok=True)
    forms = {"train": train, "dev": dev, **others}
    given = [(split, form) for split, form in forms.items() if form]
    for seed, (split, form) in enumerate(given):
        rows = rows_of(form, 16 if seed else 64, seed)
        write_table(job.data / f"{split}.tsv", HEADERS[form], rows)
    return job


# Flags of a job whose files are all named by flags.
NO_FOLDER = {"task_name": "files", "data_dir": None}
