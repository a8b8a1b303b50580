"""Compares ways of doing something that were each tried in several settings, setting by setting."""

from finetuning.metrics import imported
from run_scripts.reference.pages.statistics import sample
from run_scripts.reference.pages.tables import (
    compared_tasks,
    is_share,
    label,
    markdown_table,
    question_samples,
)


def paired_lines(question, runs, wording):
    """The differences from the first way, with what chance they have; none for other questions.

    A row for each other way, a column for each task on which it has been measured in two settings
    or more. Each setting has models that were pre-trained for it alone, so the differences vary
    with the seed of pre-training too, which those of fine-tuning do not show.

    Args:
        question: a `Question` whose `paired` names the ways.
        runs: name -> `Run`.
        wording: a `Wording`.
    """
    if not question.paired:
        return []
    found = question_samples(question, runs)
    first, *others = question.paired
    columns = {}  # task -> way -> its text
    for task in compared_tasks(question, runs):
        texts = {way: _difference(found, question.paired, first, way, task) for way in others}
        if any(texts.values()):
            columns[task] = texts
    if not columns:
        return []
    header = [wording.difference, *(label(task, wording) for task in columns)]
    rows = [
        [label(way, wording), *(texts[way] or wording.none for texts in columns.values())]
        for way in others
    ]
    note = wording.paired.format(first=label(first, wording))
    return [note, "", *markdown_table(header, rows), ""]


def _difference(found, paired, first, way, task):
    """The mean and deviation of the settings' differences, and p; "" for fewer than two."""
    pairs = [
        (found[base, task], found[other, task])
        for base, other in zip(paired[first], paired[way], strict=True)
        if found.get((base, task), ("", None))[1] and found.get((other, task), ("", None))[1]
    ]
    if len(pairs) < 2:
        return ""
    differences = sample([other.mean - base.mean for (_, base), (_, other) in pairs])
    digits = 2 if is_share(pairs[0][0][0]) else 3
    text = f"{differences.mean:+.{digits}f} ± {differences.deviation:.{digits}f}"
    if not differences.deviation:  # nothing to divide by
        return text
    p = imported("scipy.stats").ttest_1samp(differences.scores, 0).pvalue
    return f"{text} (p = {p:.2g})"
