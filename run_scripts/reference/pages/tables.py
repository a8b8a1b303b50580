"""Formats the scores of runs as tables in Markdown."""

import re

from bert_common.errors import InputError
from run_scripts.reference.pages.statistics import least_difference, rank, sample

# Parts of the names of scores that are shares, shown in percent.
IN_PERCENT = (
    "accuracy", "f1", "exact", "rouge", "pearson", "spearman", "matthews", "precision", "recall",
    "share", "auprc", "auroc",
)  # fmt: skip

SEED_PART = re.compile(r"/seed(\d+)$")


def markdown_table(header, rows):
    """A table in Markdown, a list of lines; a bar within a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"
            for row in lines]  # fmt: skip


def number(value):
    """A count with separators, another number with four digits."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.4g}"


def shown_sample(score, runs):
    """The `Sample` of a score as the pages show it: shares in percent.

    Args:
        score: its name.
        runs: the `Run`s, which differ in their seeds; their results have shares from 0 to 1, but
            for those of run_squad, which are in percent as in the original programs.
    """
    values = [run.scores.get(score) for run in runs]
    factors = [100 if is_share(score) and "run_squad" not in run.command else 1 for run in runs]
    return sample([v if v is None else f * v for v, f in zip(values, factors, strict=True)])


def is_share(score):
    """Whether a score of this name is shown in percent."""
    return any(part in score for part in IN_PERCENT)


def score_text(score, found, wording):
    """A `Sample` as text."""
    if found is None:
        return wording.none
    if is_share(score):
        spread = "" if found.deviation is None else f" ± {found.deviation:.2f}"
        return f"{found.mean:.2f}{spread}"
    spread = "" if found.deviation is None else f" ± {found.deviation:.2g}"
    return f"{number(found.mean)}{spread}"


def duration(seconds, wording):
    """A time in the page's language, for example "1 h 20 min"."""
    in_seconds, in_minutes, in_hours = wording.units
    if seconds < 59.5:
        return in_seconds.format(f"{seconds:.0f}")
    minutes = round(seconds / 60)
    return in_minutes.format(minutes) if minutes < 60 else in_hours.format(*divmod(minutes, 60))


def cpu_time(runs, wording):
    """The processors' time of runs, of those that have it noted; "–" without any."""
    noted = [run.cpu_seconds for run in runs if run.cpu_seconds is not None]
    return duration(sum(noted), wording) if noted else wording.none


def peak_memory(runs, wording):
    """The most memory that one of the runs held; "–" where none has it noted."""
    noted = [run.memory_gib for run in runs if run.memory_gib is not None]
    return f"{max(noted):.2f} GiB" if noted else wording.none


def label(name, wording):
    """How the page says a name of the ledger."""
    return wording.labels.get(name, name)


def question_samples(question, runs):
    """The scores of a question: a dict (variant, task) -> (score's name, `Sample` or None)."""
    found = {}
    for cell in question.cells:
        measured = [runs[name] for name in cell.runs if name in runs]
        found[cell.variant, cell.task] = (cell.score, shown_sample(cell.score, measured))
    return found


def baselines(question, runs):
    """What a trivial prediction scores: a dict task -> `Sample`, for tasks whose runs have it.

    The programs write it as baseline_METRIC beside eval_METRIC.
    """
    found = {}
    for cell in question.cells:
        score = re.sub("^eval_", "baseline_", cell.score)
        measured = [runs[name] for name in cell.runs if score in scores_of(name, runs)]
        if measured and score != cell.score:
            found.setdefault(cell.task, shown_sample(score, measured[:1]))
    return found


def compared_tasks(question, runs):
    """The tasks of a question on which two variants have been measured.

    By runs of their own, or by scores of their own of the same run. Times of different machines are
    not compared.
    """
    measured = {}  # task -> each variant's score and the names of its measured runs
    machines = {}  # task whose score is a time -> those that it was measured on
    for cell in question.cells:
        names = tuple(name for name in cell.runs if cell.score in scores_of(name, runs))
        if names:
            measured.setdefault(cell.task, set()).add((cell.score, names))
        if cell.score.startswith("seconds"):
            machines.setdefault(cell.task, set()).update(runs[name].machine for name in names)
    return [
        task
        for task in question.tasks
        if len(measured.get(task, ())) > 1 and len(machines.get(task, ())) <= 1
    ]


def scores_of(name, runs):
    """The scores of a run; none if it has not been made."""
    return runs[name].scores if name in runs else {}


def question_table(question, runs, wording):
    """The lines of a question's table; none while there is nothing to compare."""
    found = question_samples(question, runs)
    tasks = compared_tasks(question, runs)
    measured = {place: each for place, each in found.items() if each[1] and place[1] in tasks}
    variants = [name for name in question.variants if any(place[0] == name for place in measured)]
    if not tasks:
        return []
    rows = []
    for variant in variants:
        texts = [score_text(*found.get((variant, task), ("", None)), wording) for task in tasks]
        rows.append([label(variant, wording), *texts])
    trivial = baselines(question, runs)
    if any(task in trivial for task in tasks):
        texts = [score_text("share", trivial.get(task), wording) for task in tasks]
        rows.append([wording.trivial, *texts])
    return markdown_table([wording.variant, *(label(task, wording) for task in tasks)], rows)


def question_sentences(question, runs, wording, least=None):
    """What the scores of a question allow to say, a sentence for each task, as list items.

    Args:
        question: a `Question`.
        runs: name -> `Run`.
        wording: a `Wording`.
        least: what `least_differences` returns, for models of the size that it is of.
    """
    if question.replicates:
        return _spread_sentences(question, runs, wording)
    least = least or {}
    found, sentences, single = question_samples(question, runs), [], []
    trivial = baselines(question, runs)
    for task in compared_tasks(question, runs):
        places = {v: found[v, task] for v in question.variants if (v, task) in found}
        samples = {variant: each for variant, (_, each) in places.items() if each}
        ranking = rank(samples, next(iter(places.values()))[0], least.get(task, 0.0))
        if ranking is None:
            single.append(label(task, wording))
        elif task in trivial and samples[ranking.best].mean <= trivial[task].mean:
            sentences.append(wording.nothing_learned.format(task=label(task, wording)))
        elif not question.paired:  # a comparison setting by setting is the stronger one
            sentences.append(_ranking_sentence(task, ranking, wording))
            single_runs = [name for name, each in samples.items() if len(each.scores) == 1]
            if single_runs:
                listed = _listed(single_runs, wording)
                sentences[-1] += f" {wording.single_runs.format(variants=listed)}"
    if single and not question.paired:
        sentences.append(wording.one_seed.format(tasks="; ".join(single)))
    return [f"- {sentence}" for sentence in sentences]


def _ranking_sentence(task, ranking, wording):
    form = wording.best if ranking.not_told_apart and ranking.worse else wording.best_alone
    if not ranking.worse:
        form = wording.best_of_all
    return form.format(
        task=label(task, wording),
        best=label(ranking.best, wording),
        equal=_listed(ranking.not_told_apart, wording),
        worse=_listed(ranking.worse, wording),
    )


def _spread_sentences(question, runs, wording):
    """How much the seed of pre-training changes, a sentence for each task, as list items."""
    return [
        "- "
        + wording.spread.format(
            task=label(task, wording),
            count=len(models.scores),
            models=score_text(score, models, wording),
            least=score_text(score, sample([least_difference(models)]), wording),
        )
        for task, (score, models) in _replicates(question, runs).items()
    ]


def least_differences(questions, runs):
    """Differences that two models need, so that it is not their seed: a dict task -> difference.

    Args:
        questions: a list of `Question`; those that have `replicates` say it.
        runs: name -> `Run`.
    """
    return {
        task: least_difference(models)
        for question in questions
        for task, (_, models) in _replicates(question, runs).items()
    }


def _replicates(question, runs):
    """The means of models that differ in the seed of pre-training: task -> (score, `Sample`)."""
    places, found = question_samples(question, runs), {}
    for task in compared_tasks(question, runs) if question.replicates else ():
        measured = [places[v, task] for v in question.replicates if (v, task) in places]
        score, means = measured[0][0], [each.mean for _, each in measured if each]
        if len(means) > 1 and not score.startswith("seconds"):
            found[task] = (score, sample(means))
    return found


def _listed(names, wording):
    return wording.list_comma.join(label(name, wording) for name in names)


def without_seed(name):
    """A run's name without its seed, and the seed as text; "" where the name has none."""
    match = SEED_PART.search(name)
    return (name[: match.start()], match[1]) if match else (name, "")


def group_by_seed(names):
    """Groups runs that differ in their seeds: a dict name without seed -> their names."""
    groups = {}
    for name in names:
        groups.setdefault(without_seed(name)[0], []).append(name)
    return groups


def run_lines(question, runs, wording):
    """The runs of a question, folded away: name, seeds, time, CPU time, memory, machine."""
    letters = machine_letters(runs)
    names = dict.fromkeys(name for cell in question.cells for name in cell.runs)
    measured = [name for name in names if name in runs]
    lines = ["<details>", f"<summary>{wording.runs_title}</summary>", "", wording.runs_note, ""]
    for group, members in group_by_seed(measured).items():
        of_group = [runs[name] for name in members]
        seeds = wording.list_comma.join(filter(None, (without_seed(n)[1] for n in members)))
        time = duration(sum(run.seconds for run in of_group), wording)
        cost = wording.cost.format(time=time, cpu=cpu_time(of_group, wording))
        memory = peak_memory(of_group, wording)
        on = "".join(sorted({letters[run.machine] for run in of_group}))
        shown = f"{wording.list_comma}{wording.seeds.format(seeds=seeds)}" if seeds else ""
        lines.append(f"- `{group}`{shown}: {cost}, {memory}, {on}")
    return [*lines, "", "</details>", ""]


def machine_letters(runs):
    """A letter for each machine: a dict `Machine` -> "A", "B", …"""
    machines = dict.fromkeys(run.machine for run in runs.values())
    if len(machines) > 26:
        raise InputError(f"runs must be of at most 26 machines. Received: {len(machines)}")
    return {machine: chr(ord("A") + i) for i, machine in enumerate(machines)}
