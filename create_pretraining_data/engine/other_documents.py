"""Reads text of other documents for a chunk that is a single one, where random sentences come from.

Books are as long as a chunk: without this a random next sentence would always be one of the same
book.
"""

import random

from create_pretraining_data.engine.splitting import read_chunk
from create_pretraining_data.engine.work_plan import seed_of
from create_pretraining_data.instances.sentences import split_documents

# From so many chunks, of each so many characters: some thousand sentences, which are little to
# tokenize beside a chunk.
CHUNKS, CHARACTERS = 8, 30_000


def read_other_documents(plan, number):
    """Reads excerpts of other documents than the one that a chunk is a part of.

    One chunk at a time is in memory. What is read depends on the plan alone.

    Args:
        plan: a `WorkPlan`.
        number: of a chunk with a single document.

    Returns:
        A list of documents, as `read_chunk` returns them; empty if there is no other document.
    """
    first = last = number  # the chunks that hold some of the document
    while first in plan.continued:
        first -= 1
    while last + 1 in plan.continued:
        last += 1
    rng = random.Random(seed_of("other documents", plan.seed, number))
    others = [k for k in range(len(plan.chunks)) if k != number and not first < k < last]
    rng.shuffle(others)
    excerpts = []
    for other in others:
        documents = read_chunk(plan.chunks[other], plan.input_format)
        # Before the document there may be others in its first chunk, after it in its last.
        ends_with_it, begins_with_it = first <= other < last, first < other <= last
        documents = documents[begins_with_it : len(documents) - ends_with_it]
        if documents:
            excerpts.append(_cut_excerpt(documents, rng))
        if len(excerpts) == CHUNKS:
            break
    taken = [document for excerpt in excerpts for document in excerpt]
    return split_documents(taken) if plan.split_sentences else taken


def _cut_excerpt(documents, rng):
    """Sentences of `CHARACTERS` from a random one on, by document."""
    first = rng.randrange(len(documents))
    start = rng.randrange(len(documents[first]))
    taken, room = [], CHARACTERS
    for document in [documents[first][start:], *documents[first + 1 :]]:
        part = []
        for sentence in document:
            if room > 0:
                part.append(sentence[:room])
                room -= len(sentence)
        if part:
            taken.append(part)
    return taken
