"""The retrieval program, which measures how well vectors find the text that answers a query."""

import dataclasses
import functools
import sys
from collections.abc import Callable

from bert_common.errors import InputError
from finetuning.metrics import check_installed
from finetuning.question_answering.data import read_questions
from finetuning.similarity.collection import Collection, beir_files, of_pairs, read_beir
from finetuning.similarity.data import pairs_of_questions
from finetuning.similarity.lexical import Bm25, known_tokens, search_tf_idf
from finetuning.similarity.ranking import (
    DEEPEST,
    MEASURES,
    Found,
    rank_measures,
    search,
    unit_vectors,
)
from model_formats.model_folder import REFERENCE_VECTORS
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.finetune import read_articles
from run_scripts.flags.parser import run_program
from run_scripts.flags.training import check_length

SPLIT = "test"  # the default of --split


@dataclasses.dataclass(frozen=True)
class RetrievalFlags(DeviceFlags):
    """Measures how well a model's vectors find the text that answers a query.

    The measures are recall at 1, 10 and 100, MRR at 10 and nDCG at 10. They are also computed for
    BM25 on the model's tokens, for both together, and for TF-IDF on characters.

    The queries come from a folder in BEIR's format (queries.jsonl, corpus.jsonl, qrels), or they
    are the questions of a file in SQuAD's format; each must find its own text among all texts in
    the file."""

    EXAMPLE = "--model_dir=output/vectors --questions=data/KorQuAD_v1.0_dev.json"

    model_dir: str = groups.MODEL.input_folder(
        "The folder of the model to evaluate. Default: reference_vectors, included in this project."
    )
    data_dir: str = groups.FILES.input_folder(
        "The folder of the data set in BEIR's format, with queries.jsonl, corpus.jsonl and "
        "qrels. Give either this flag or --questions."
    )
    split: str = groups.FILES.optional(
        "The split to evaluate, from the qrels folder in --data_dir: train, dev or test. "
        f"Default: {SPLIT}.",
        needs=("data_dir",),
    )
    questions: str = groups.FILES.input_file(
        "A file of questions in SQuAD's format, such as KorQuAD 1.0. Give either this flag or"
        " --data_dir."
    )
    articles: str = groups.FILES.optional(
        "The range of articles to use, counted from 0; 0:100 means the first hundred. Default: "
        "all.",
        needs=("questions",),
    )
    max_seq_length: int = groups.ROWS.optional(
        "The maximum number of tokens in a query or a text, including special tokens. "
        "Default: as in the model's training.",
        least=3,
    )


def measure_retrieval(values: RetrievalFlags) -> None:
    """Reads queries and texts, and prints a line of measures for each way to rank."""
    if bool(values.data_dir) == bool(values.questions):
        raise InputError(
            "--data_dir or --questions must be given, and only one. Received: "
            f"{'both' if values.data_dir else 'neither'}"
        )
    check_installed()
    collection = read_collection(values)
    print(f"{len(collection.queries):,} queries, {len(collection.corpus):,} texts")
    start_tensorflow(values)
    from korean_bert.loading import load_model

    model = load_model(values.model_dir or REFERENCE_VECTORS)
    if values.max_seq_length:
        check_length(values, model.loaded.config)
    queries, corpus = collection.queries, collection.corpus
    depth = DEEPEST + 1  # one more, as a query's own text may be skipped

    asked = unit_vectors(model.embed(queries, max_length=values.max_seq_length))
    vectors = unit_vectors(model.embed(corpus, max_length=values.max_seq_length))
    bm25 = Bm25(corpus, known_tokens(model.tokenizer))
    ways: dict[str, Callable[[], Found]] = {
        "vectors": lambda: search(asked, vectors, depth),
        "BM25 on tokens": lambda: bm25.search(queries, depth),
        "hybrid of both": lambda: bm25.search_with_vectors(queries, asked, vectors, depth),
        "TF-IDF on characters": lambda: search_tf_idf(queries, corpus, depth),
    }
    print("\t".join(["", *MEASURES]))
    for name, find in ways.items():
        measures = rank_measures(find().places, collection.relevant, collection.own)
        print("\t".join([name, *(f"{100 * measures[m]:.1f}" for m in MEASURES)]))


def read_collection(values: RetrievalFlags) -> Collection:
    """Reads the queries and texts that the flags name."""
    articles = read_articles(values.articles, "articles")
    if values.data_dir:
        return read_beir(*beir_files(values.data_dir, values.split or SPLIT))
    questions, _ = read_questions(values.questions, with_answers=False, articles=articles)
    pairs = pairs_of_questions(questions, values.questions)
    return of_pairs([(pair.texts[0], pair.texts[1]) for pair in pairs])


main = functools.partial(run_program, measure_retrieval, RetrievalFlags)

if __name__ == "__main__":
    sys.exit(main())
