"""Reads excerpts of other documents, for random next sentences in a chunk of a single document.

Books are as long as a chunk: without this, a random next sentence would always come from the same
book.
"""

import random

from create_pretraining_data.engine.repeats import read_kept_text
from create_pretraining_data.engine.work_plan import WorkPlan, derive_seed
from create_pretraining_data.instances.sentences import split_documents

# The number of excerpts, each from another chunk, and their length: some thousand sentences, which
# take little time to tokenize compared with a chunk.
EXCERPTS, EXCERPT_CHARACTERS = 8, 30_000


def read_other_documents(plan: WorkPlan, number: int) -> list[list[str]]:
    """Reads excerpts of documents other than the one that a chunk belongs to: lists of lines.

    Only one chunk is in memory at a time. The excerpts depend on nothing but the plan.
    """
    first = last = number  # the chunks that hold parts of the document
    while first in plan.continued:
        first -= 1
    while last + 1 in plan.continued:
        last += 1
    rng = random.Random(derive_seed("other documents", plan.seed, number))
    others = [k for k in range(len(plan.chunks)) if k != number and not first < k < last]
    rng.shuffle(others)
    excerpts = []
    for other in others:
        documents, _ = read_kept_text(plan, other)
        # The document's first chunk may hold others before it, its last chunk others after it.
        ends_with_it, begins_with_it = first <= other < last, first < other <= last
        documents = documents[begins_with_it : len(documents) - ends_with_it]
        documents = list(filter(None, documents))
        if documents:
            excerpts.append(_cut_excerpt(documents, rng))
        if len(excerpts) == EXCERPTS:
            break
    documents = [document for excerpt in excerpts for document in excerpt]
    return split_documents(documents) if plan.split_sentences else documents


def _cut_excerpt(documents, rng):
    """Cuts `EXCERPT_CHARACTERS` from documents, beginning with a random sentence."""
    first = rng.randrange(len(documents))
    start = rng.randrange(len(documents[first]))
    excerpt, room = [], EXCERPT_CHARACTERS
    for document in [documents[first][start:], *documents[first + 1 :]]:
        part = []
        for sentence in document:
            if room > 0:
                part.append(sentence[:room])
                room -= len(sentence)
        if part:
            excerpt.append(part)
    return excerpt
