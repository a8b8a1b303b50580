"""Measures how much pre-training helps answering KorQuAD's questions.

    python -m benchmarks.quality.question_answering --model_dir=output \\
        --input_file=KorQuAD_v1.0_dev.json

The questions are split by article, in memory: every fifth article is held out. Models are trained
by run_squad, which gets the flags after `--`, from pre-trained and from random weights. Prints a
Markdown table: exact match and F1 on the questions about held-out articles, beside those of rules
that need no model and the upper bound that the vocabulary sets. With --work_dir, an interrupted
benchmark can be resumed.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.common import print_table
from benchmarks.quality.fine_tuning import common_flags
from bert_tf.training.evaluation import read_results
from finetuning.question_answering.data import QuestionDataset, read_questions
from finetuning.question_answering.scores import score_answers
from finetuning.question_answering.task import character_pairs, nearest_sentence
from run_scripts.downstream.program import finetune
from run_scripts.flags.parser import parse
from run_scripts.squad import PROGRAM, SquadFlags

HELD_OUT = 5  # every fifth article is held out
NEIGHBOURS = 3  # how many words on each side `words_beside` considers


def split_by_article(path):
    """The questions to train on, and those about held-out articles."""
    articles = json.loads(Path(path).read_text(encoding="utf-8"))["data"]
    held_out = {
        entry["context"] for article in articles[::HELD_OUT] for entry in article["paragraphs"]
    }
    splits = {"train": [], "dev": []}
    for question in read_questions(path)[0]:
        splits["dev" if question.context in held_out else "train"].append(question)
    return splits


def first_word(question, context):
    """The first word of the context."""
    return context.split()[0]


def words_beside(count):
    """A rule: words of the nearest sentence that the question lacks, next to words that it has."""

    def answer(question, context):
        words = nearest_sentence(question, context).split()
        of_question = character_pairs(question)
        shared = [len(of_question & character_pairs(word)) for word in words]

        def fitness(i):
            around = shared[max(0, i - NEIGHBOURS) : i] + shared[i + count :][:NEIGHBOURS]
            return sum(around) - NEIGHBOURS * sum(shared[i : i + count])

        best = max(range(max(1, len(words) - count + 1)), key=fitness)
        return " ".join(words[best : best + count])

    return answer


RULES = {
    "the text's first word": first_word,
    "the sentence most like the question": nearest_sentence,
    "in it a word beside those of the question": words_beside(1),
    "in it two words beside those of the question": words_beside(2),
}


def train(arguments, splits, output, pretrained):
    """Fine-tunes and measures unless that is done; returns the numbers in eval_results.txt."""
    if not read_results(output):
        files = ["--train_file=in memory", "--predict_file=in memory"]
        flags = ["--task_name=korquad", *files, *common_flags(arguments, output, pretrained)]
        in_memory = {split: (questions, 0) for split, questions in splits.items()}
        dataset = QuestionDataset("korquad", False, in_memory)
        program = PROGRAM._replace(read_data=lambda _: dataset)
        finetune(parse(SquadFlags, ["run_squad", *flags]), program)
    return read_results(output)


def main():
    """Reads the command line, trains twice, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", required=True, help="an --output_dir of run_pretraining")
    parser.add_argument("--input_file", required=True, help="KorQuAD 1.0")
    parser.add_argument("--work_dir", type=Path, help="to resume from; else a temporary folder")
    parser.add_argument("flags", nargs="*", help="of run_squad, after --")
    arguments = parser.parse_args()
    splits = split_by_article(arguments.input_file)
    rows = []
    for name, rule in RULES.items():
        texts = {entry.id: rule(entry.question, entry.context) for entry in splits["dev"]}
        scores = score_answers(splits["dev"], texts, "korquad")
        rows.append((name, scores["exact_match"], scores["f1"]))
    with tempfile.TemporaryDirectory() as temporary:
        work_dir = arguments.work_dir or Path(temporary)
        for name, pretrained in (("pre-trained", True), ("random weights", False)):
            results = train(arguments, splits, work_dir / name.replace(" ", "_"), pretrained)
            rows.append((name, results["eval_exact"], results["eval_f1"]))
    best = results["eval_reachable_exact"], results["eval_reachable_f1"]
    rows.append(("the best span of the text", *best))
    cells = [[name, f"{exact:.2f}", f"{f1:.2f}"] for name, exact, f1 in rows]
    print_table(["answers", "exact match", "F1"], cells)
    print(f"\n{len(splits['train']):,} questions to train on, {len(splits['dev']):,} held out")


if __name__ == "__main__":
    main()
