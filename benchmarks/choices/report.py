"""Says where in the tables of results each run belongs."""

from choices.tasks import LINEAR_FEATURES, LINEAR_TASKS, TASKS
from run_scripts.reference.pages.questions import Cell, Question

# What is measured of a variant besides tasks: the column, the piece's task, the score.
COLUMNS = (
    ("pieces per word", "records", "pieces_per_word"),
    ("bits per character", "bits", "{variant}_bits"),
    ("bits per character, all pieces at once", "bits", "{variant}_bits_at_once"),
    ("seconds per update", "pretraining", "seconds_per_update"),
)
MASKED_WORDS = ("masked-LM accuracy, held-out text", "pretraining", "masked_lm_accuracy")
# The records of each objective: the column, the score. Those of none hold the same masked words for
# all models, but only the model of none was trained on such rows.
OBJECTIVES = (
    ("none", "masked-LM accuracy, rows without pairs", "masked_lm_accuracy"),
    ("nsp", "random or next sentence", "sentence_accuracy"),
    ("sop", "order of sentences", "sentence_accuracy"),
)

LINEAR_TITLES = ("Linear models on TF-IDF features", "TF-IDF 특징을 쓰는 선형 모델")


def make_questions(plan, questions):
    """Lists the tables' `Question`s, for the pages of results.

    Args:
        plan: a `Plan`.
        questions: name -> the `choices.questions.Question` that it was made of.
    """
    runs = {}  # (question, variant, task) -> names
    for piece in plan.pieces.values():
        for use in piece.uses:
            runs.setdefault(tuple(use), []).append(piece.name)

    def cell(question, variant, task, column, score):
        names = runs.get((question, variant, task))
        return [Cell(variant=variant, task=column, score=score, runs=tuple(names))] if names else []

    made = []
    for name, question in questions.items():
        cells = []
        for variant, row in question.variants.items():
            columns = (*COLUMNS, MASKED_WORDS) if question.masks_equally else COLUMNS
            for column, task, score in columns:
                cells += cell(name, variant, task, column, score.format(variant=variant))
            for objective, column, score in OBJECTIVES if question.compares_objectives else ():
                own = row.records["objective"] == objective
                task = "pretraining" if own else f"on-{objective}"
                cells += cell(name, variant, task, column, score)
            for task in question.tasks:
                for column, score in ((task, TASKS[task].score), *TASKS[task].also):
                    cells += cell(name, variant, task, column, score)
        made.append(
            Question(
                name=name,
                title=question.title,
                title_ko=question.title_ko,
                cells=tuple(cells),
                replicates=question.replicates,
                paired=question.paired,
            )
        )
    cells = [
        found
        for features in LINEAR_FEATURES
        for task, row in LINEAR_TASKS.items()
        for column, score in ((task, row.score), *row.also)
        for found in cell("linear", features, task, column, score)
    ]
    title, title_ko = LINEAR_TITLES
    made.append(Question(name="linear", title=title, title_ko=title_ko, cells=tuple(cells)))
    return [question for question in made if question.cells]
