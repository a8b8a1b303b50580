"""The baseline of the benchmark of partners does not know the sentence that it looks for."""

from benchmarks.quality.partners import PAIRS, by_characters, read_pairs


def test_the_weights_are_learned_from_the_other_sentences():
    """As docs/similarity.md counts: 2 and 11 of 28, not the 2 and 10 of weights that know all."""
    sentences, partners = read_pairs(PAIRS)
    places = [
        list(row).index(partner)
        for row, partner in zip(by_characters(sentences), partners, strict=True)
    ]
    assert (places.count(0), sum(place < 3 for place in places)) == (2, 11)
