"""The sentences of docs/results.md."""

from run_scripts.reference.pages.wording import Wording, vocabularies

ENGLISH = Wording(
    title="Results",
    navigation="[한국어](results.ko.md) · [README](../README.md)",
    notes_file="notes.md",
    notes_title="Notes",
    introduction=(
        "Every number on this page comes from [`results/runs.jsonl`](results/runs.jsonl). It has a "
        "line for each run that was measured: command, machine, seed, time, memory, scores. "
        "`python -m run_scripts.reference.pages` writes the page from that file. "
        "`python -m run_scripts.reference.again --count=5 --seed=1` picks five runs at random "
        "among those whose inputs are there, runs them again and prints the old and the new "
        "numbers side by side."
    ),
    empty="No run has been measured yet: `results/runs.jsonl` is empty.",
    machines="Machines",
    reading=(
        "Where a run was made with several seeds, a number is the mean ± the standard deviation "
        "over the seeds. The seeds are those of fine-tuning; each model was pre-trained once "
        "unless a table says otherwise. Two means cannot be told apart if they differ by less than "
        "Tukey's honestly significant difference at 5 %, which allows for the number of variants "
        "in the table, or by less than the variation between seeds of pre-training, where that was "
        "measured (the spread, below). Accuracy, F1 and correlations are in percent."
    ),
    phases_title="Pre-training",
    phases_note=(
        "In the order in which they were made. Where a run went on from the weights of another, "
        "`--init_checkpoint` in its command below names them."
    ),
    phases_header=(
        "run",
        "rows of",
        "updates",
        "time",
        "CPU time",
        "memory",
        "machine",
        "seed",
    ),  # fmt: skip
    stages_title="What each stage took",
    cost_header=("stage", "result", "time", "CPU time", "memory", "machine", "seed", "code"),
    total="Together: {time}, {cpu} of CPU time.",
    held_out_title="Held-out text",
    held_out_note=(
        "Bits per character: the summed loss on masked words, in bits, divided by the characters "
        "that they have. "
        "Sentence order: whether two segments are in their order; guessing gets 50, always "
        "giving the same answer slightly more where the labels are uneven. "
        "The weights of `reference-1` to `-6` are those of the best of about twenty evaluations "
        "on rows of this text."
    ),
    order_title="Sentence order by kind of row",
    order_header=(
        "run",
        "row length",
        "examples",
        "share with a beginning",
        "model: all",
        "model: with a beginning",
        "model: others",
        "rule: all",
        "rule: with a beginning",
        "rule: others",
    ),
    order_note=(
        "Sentence-order accuracy, separately for rows in which a segment starts in the first "
        "sentence of a document and for the others; guessing gets 50. The rule is not trained: it "
        'answers "in order" if the end of the first segment shares more pieces with the start of '
        "the second than the end of the second shares with the start of the first. Rarer pieces "
        "count more, and a tie counts as half right. The model and the rule see the same rows, "
        "with the same pieces masked (`benchmarks/quality/order.py`)."
    ),
    curves_alt="Loss and accuracies on held-out text over hours of training, a line for each phase",
    curves_alt_gpu="Accuracies on held-out text over minutes of training on a GPU",
    curves_note=(
        "Held-out text during training. The evaluation rows are those of `--eval_input_file` in "
        "the commands below, where they have it. Lines that were evaluated on rows of different "
        "lengths cannot be compared. Where the length is the same, a line can still begin above or "
        "below the end of the one before it: new positions have to be learned, and the learning "
        "rate rises again. "
        "Nor can lines be compared with the table below where rows have fewer masks: at most 20, "
        "the default of `--max_predictions_per_seq`, are 4 % of a row of 512, an easier "
        "task than the 15 % of the table. In the picture of GPUs the time of each run starts at 0."
    ),
    tasks_title="{name}: Korean tasks",
    tasks_header=("task", "measured on", "this model", "random weights"),
    tasks_note="This model and random weights have the same network, vocabulary and fine-tuning.",
    linear="linear, {features}",
    questions_title="What pays",
    variant="variant",
    trivial="the trivial answer",
    nothing_learned="{task}: none is better than the trivial answer, so there is no order.",
    best="{task}: best is {best}; cannot be told apart from it: {equal}; worse: {worse}.",
    best_alone="{task}: best is {best}; worse: {worse}.",
    best_of_all="{task}: best is {best}; cannot be told apart from it: {equal}.",
    one_seed="{tasks}: fewer than two variants were run several times, so no order.",
    single_runs="Not compared, one run alone: {variants}.",
    spread=(
        "{task}: {count} models with different seeds of pre-training have {models}. A "
        "difference of less than {least} between two models, each pre-trained once, may be due to "
        "that seed alone (Student's t, 5 %)."
    ),
    difference="difference",
    paired=(
        "The differences from {first} of the same size: their mean ± their standard deviation over "
        "the sizes, and p of a paired t test, not corrected for the number of columns. Each of "
        "these models was pre-trained on its own, so the seed of pre-training counts here too."
    ),
    runs_title="Runs",
    runs_note=(
        "Time, CPU time, memory and machine. Where the time is several times the CPU time, the run "
        "was paused or shared its cores."
    ),
    cost="{time} ({cpu} of CPU time)",
    commands_title="Commands",
    commands_note=(
        "As they were typed in the project's folder. `output/NAME` holds the model that the run of "
        "that name made, and `reference_model` is what it was at that time. `results/runs.jsonl` "
        "has the command of every other run under its name."
    ),
    seeds="seeds {seeds}",
    none="–",
    list_comma=", ",
    units=("{} s", "{} min", "{} h {} min"),
    stages={
        "heldout": "held-out text",
        "order": "sentence order",
        "pretraining": "pre-training",
    },
    labels={
        "model": "the reference model",
        "random_weights": "random weights",
        "masked_lm_loss": "masked-LM loss",
        "masked_lm_accuracy": "masked-LM accuracy",
        "sentence_order_accuracy": "sentence-order accuracy",
        "next_sentence_accuracy": "next-sentence accuracy",
        "bits_per_character": "bits per character",
        "run": "run",
        "examples": "examples",
        "megabytes": "MB",
        "pieces": "pieces",
        "records": "records",
        "documents": "documents",
        "reviews": "reviews with repeats",
        "held_out_documents": "held-out documents",
        "left_out_documents": "documents left out",
        "left_out_reviews": "reviews left out with repeats",
        "seconds_per_update": "seconds per update",
        "global_step": "updates",
        "positions": "positions",
        "trained_positions": "of them trained",
        "row_length": "row length",
        "klue-ner": "klue-ner (F1 of entities)",
        "korsts": "korsts (Pearson)",
        "klue-sts": "klue-sts (trained on KorSTS, Pearson)",
        "korquad": "korquad (F1)",
        "usual": "usual WordPiece",
        "kiwi": "ours with kiwipiepy",
        "plain": "ours without an analyser",
        **vocabularies(
            usual="usual WordPiece ({:,})",
            kiwi="ours with kiwipiepy ({:,})",
            plain="ours without an analyser ({:,})",
        ),
    },
)
