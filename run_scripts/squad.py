"""The run_squad program, which fine-tunes a pre-trained model to answer questions about texts."""

import dataclasses
import functools
import operator
import os
import sys
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from finetuning.question_answering.data import (
    QuestionDataset,
    has_answers,
    read_dataset_split,
    read_questions,
)
from finetuning.question_answering.windows import SPECIALS
from finetuning.tasks import TASKS
from model_formats.folder_weights import trained_checkpoint
from run_scripts.downstream.job import DownstreamJob
from run_scripts.downstream.program import Program, finetune
from run_scripts.flags import groups
from run_scripts.flags.declaration import PerModel, redeclare
from run_scripts.flags.distillation import TeacherFlags
from run_scripts.flags.finetune import TRAIN_PART, FinetuneFlags, read_articles, reads_split
from run_scripts.flags.parser import run_program
from tokenization import FullTokenizer

if TYPE_CHECKING:
    from finetuning.question_answering.task import QuestionAnswering
    from model_formats.encoders import Encoder

# As in google-research/albert's run_squad_v2.py.
START_N_TOP = END_N_TOP = 5

SETTINGS = TASKS["question_answering"].settings

shared = functools.partial(redeclare, FinetuneFlags)


@dataclasses.dataclass(frozen=True)
class SquadFlags(TeacherFlags, FinetuneFlags):
    """Fine-tunes BERT, ALBERT or ELECTRA to answer questions with a span of a text.

    The data is SQuAD 1.1 or 2.0, KorQuAD 1.0, KLUE-MRC, or your own files in the same format. To
    answer questions after training, give --do_predict, --predict_file and the --output_dir of the
    training run."""

    EXAMPLE = (
        "--task_name=korquad --train_file=data/KorQuAD_v1.0_train.json "
        "--predict_file=data/KorQuAD_v1.0_dev.json --output_dir=output/korquad "
        "--bert_config_file=output/model/bert_config.json --tokenizer_dir=data/vocab "
        "--init_checkpoint=output/model/model.ckpt-20000 --do_train --do_predict"
    )

    data_dir: str = shared(
        "data_dir",
        help="The folder that --train_file and --predict_file are relative to. Default: the "
        "working directory.",
        required=False,
    )
    train_file: str = groups.FILES.optional(
        "The questions to train on, a JSON file in SQuAD's format.", is_path=True
    )
    predict_file: str = groups.FILES.optional(
        "The questions to answer, in SQuAD's format. If the file contains answers, the model's "
        "answers are scored.",
        is_path=True,
    )
    train_articles: str = groups.FILES.optional(
        "The range of articles in --train_file to train on; 0:100 means the first hundred. "
        "Default: all."
    )
    predict_articles: str = groups.FILES.optional(
        "The range of articles in --predict_file to use; 0:100 means the first hundred. Default: "
        "all."
    )
    skip_bad_answers: bool = groups.FILES.flag(
        False,
        "When training, skip answers that do not occur in the passage, and questions left without "
        "an answer. Scoring still uses all answers. Default: stop with an error.",
    )
    task_name: str = groups.TASK.setting(
        SETTINGS["task_name"], "The data set whose rules are used for scoring."
    )
    max_query_length: int = groups.ROWS.setting(
        SETTINGS["max_query_length"],
        "The maximum number of tokens in a question; the rest is cut off.",
    )
    doc_stride: int = groups.ROWS.setting(
        SETTINGS["doc_stride"],
        "The number of tokens between the starts of neighbouring windows of a long text.",
    )
    version_2_with_negative: bool = groups.ROWS.setting(
        SETTINGS["version_2_with_negative"], "Allow unanswerable questions, as in SQuAD 2.0."
    )
    do_predict: bool = shared(
        "do_predict",
        help="Answer the questions in --predict_file and write the answers to --output_dir. Score "
        "them too if the file contains correct answers.",
    )
    do_eval: bool = shared(
        "do_eval", help="Score the model's answers to the questions in --predict_file."
    )
    max_seq_length: int = groups.ROWS.setting(
        SETTINGS["max_seq_length"],
        "The maximum number of tokens in a question and its passage together, including "
        "special tokens. Longer passages are divided into overlapping windows.",
    )
    n_best_size: int = groups.ANSWERS.setting(
        SETTINGS["n_best_size"], "The number of candidate answers to write for each question."
    )
    max_answer_length: int = groups.ANSWERS.setting(
        SETTINGS["max_answer_length"], "The maximum number of tokens in an answer."
    )
    null_score_diff_threshold: float = groups.ANSWERS.setting(
        SETTINGS["null_score_diff_threshold"],
        "If --version_2_with_negative is on, questions whose no-answer score (in null_odds.json) "
        "exceeds this threshold get no answer.",
    )
    google_answers: bool = groups.ANSWERS.flag(
        False,
        "Select and trim answers as google-research/bert does, so that scores are comparable. Add "
        "--bucket_boundaries=none to match its answers exactly.",
    )
    start_n_top: int = groups.HEAD.optional(
        "The number of start positions that ALBERT's SQuAD 2.0 head considers. Setting this flag "
        f"gives BERT that head too. Default: {START_N_TOP} where that head is used.",
        least=1,
    )
    end_n_top: int = groups.HEAD.optional(
        "The number of end positions that ALBERT's SQuAD 2.0 head considers for each start "
        f"position. Default: {END_N_TOP}.",
        least=1,
    )
    dropout_prob: float = groups.HEAD.flag(
        0.1, "The dropout rate in ALBERT's SQuAD 2.0 head.", least=0, below=1
    )
    classifier_dropout: float = shared(
        "classifier_dropout",
        help="Accepted but has no effect.",
        group=groups.COMPATIBILITY,
        no_effect=True,
    )
    num_train_epochs: float = shared(
        "num_train_epochs",
        default=PerModel(3.0),
        help="The number of passes over the training questions.",
    )
    train_step: int = shared("train_step", default=PerModel(None))
    warmup_proportion: float = shared("warmup_proportion", default=PerModel(0.1))
    warmup_step: int = shared("warmup_step", default=PerModel(None))
    train_feature_file: str = groups.COMPATIBILITY.unused()
    predict_feature_file: str = groups.COMPATIBILITY.unused()
    predict_feature_left_file: str = groups.COMPATIBILITY.unused()
    verbose_logging: bool = groups.COMPATIBILITY.unused()
    use_einsum: bool = groups.COMPATIBILITY.unused()
    export_dir: str = groups.COMPATIBILITY.optional(
        "Must be left out: export_model.py --format=saved_model writes a SavedModel.", refused=True
    )

    @property
    def named_weights(self) -> str | None:
        """--init_checkpoint, unless nothing is trained and --output_dir holds a trained model."""
        unused = not self.do_train and trained_checkpoint(self.output_dir)
        return None if unused else self.init_checkpoint


def answer(values: SquadFlags) -> None:
    """Checks run_squad's own flags and runs the program."""
    check_squad_flags(values)
    if values.init_checkpoint and not values.named_weights:
        print(
            f"note: --init_checkpoint={values.init_checkpoint} is not read: --output_dir holds "
            "checkpoints, and nothing is trained"
        )
    finetune(values, PROGRAM)


def check_squad_flags(values: SquadFlags) -> None:
    """Raises an `InputError` if flags cannot work, whatever settings the model's folder has."""
    needed = {"train_file": "--do_train"} if values.do_train else {}
    if (values.do_eval or values.do_predict) and values.eval_on != TRAIN_PART:
        needed["predict_file"] = "--do_predict" if values.do_predict else "--do_eval"
    for name, switch in needed.items():
        if not getattr(values, name):
            raise InputError(f"{switch} requires --{name}. Received: none")


def path_of(values: SquadFlags, name: str) -> str:
    """Returns the path of a file of questions, given the name of its flag."""
    return os.path.join(values.data_dir or "", getattr(values, name))


def read_data(values: SquadFlags) -> QuestionDataset:
    """Reads the questions that the flags name."""
    if values.max_seq_length <= values.max_query_length + SPECIALS:
        raise InputError(
            f"--max_seq_length must be greater than --max_query_length + {SPECIALS}. Received: "
            f"--max_seq_length={values.max_seq_length}, "
            f"--max_query_length={values.max_query_length}"
        )
    null, questions = values.version_2_with_negative, {}
    if values.do_train:
        articles = read_articles(values.train_articles, "train_articles")
        path = path_of(values, "train_file")
        bad = "leave out" if values.skip_bad_answers else "refuse"
        questions["train"] = read_questions(path, null, articles=articles, bad_answers=bad)
    if values.predict_file and (reads_split(values, "dev") or reads_split(values, "test")):
        path = path_of(values, "predict_file")
        articles = read_articles(values.predict_articles, "predict_articles")
        answered = has_answers(path, articles)
        split = "dev" if answered else "test"
        bad = "keep" if values.skip_bad_answers else "refuse"
        questions[split] = read_questions(path, null, answered, articles, bad)
    return QuestionDataset(values.task_name, null, questions)


def beam_sizes(values: SquadFlags, encoder: "Encoder") -> dict[str, int | None]:
    """Returns the beam's sizes from flags or defaults; they are None if the head has no beam."""
    has_beam = encoder.beams and values.version_2_with_negative
    if not (has_beam or values.start_n_top or values.end_n_top):
        return {"start_n_top": None, "end_n_top": None}
    return {
        "start_n_top": values.start_n_top or START_N_TOP,
        "end_n_top": values.end_n_top or END_N_TOP,
    }


def make_task(job: DownstreamJob[SquadFlags, QuestionDataset]) -> "QuestionAnswering":
    """Returns the `QuestionAnswering` of a `DownstreamJob`."""
    from finetuning.question_answering.task import QuestionAnswering

    values, tokenizer = job.flags, job.tokenizer
    starts, ends = job.settings["start_n_top"], job.settings["end_n_top"]
    beams = (starts, ends) if starts else None
    if values.google_answers and (beams or not isinstance(tokenizer, FullTokenizer)):
        raise InputError(
            "--google_answers requires BERT's head and google-research/bert's tokenizer. "
            f"Received: {'a head with beams' if beams else type(tokenizer).__name__}"
        )
    return QuestionAnswering(
        dataset=job.dataset,
        tokenizer=tokenizer,
        max_length=values.max_seq_length,
        doc_stride=values.doc_stride,
        max_query_length=values.max_query_length,
        n_best_size=values.n_best_size,
        max_answer_length=values.max_answer_length,
        threshold=values.null_score_diff_threshold,
        beams=beams,
        dropout=values.dropout_prob,
        google_answers=values.google_answers,
    )


PROGRAM = Program(
    TASKS["question_answering"],
    read_data,
    read_dataset_split,
    make_task,
    uses_libraries=False,
    scores_predictions=True,
    shared_text=operator.attrgetter("article"),
    texts=operator.attrgetter("question", "context"),
    head_settings=beam_sizes,
)


main = functools.partial(run_program, answer, SquadFlags)

if __name__ == "__main__":
    sys.exit(main())
