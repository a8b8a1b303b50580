"""All real text and 50,000 random strings, through graphs too: slow tests, of minutes."""

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")

from hypothesis import Phase, given, settings  # noqa: E402

from tests.support.paths import SHARED  # noqa: E402
from tests.support.tokenizer_cases import (  # noqa: E402
    ANY_TEXT,
    TEXTS,
    check_graph,
    check_offsets,
    check_round_trip,
    full_tokenizers,
    korean_tokenizers,
)
from tests.support.vocabularies import JAMO, write_lines  # noqa: E402
from tokenization import FullTokenizer, KoreanTokenizer  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*was made for decomposed text"),
    pytest.mark.filterwarnings("ignore:.*lower-casing here decomposes Hangul"),
]

AT_ONCE = 5000  # texts in a call of the graph
STRINGS = 50_000

# Together they have every switch in at least two settings.
REAL = {
    "every switch": {
        "do_lower_case": True, "unknown": "character", "jamo_fallback": True, "fold_width": True,
        "drop_invisible": True, "shorten_runs": 3, "word_end_marker": "\u2581",
        "word_end_marker_at": "eojeol",
    },
    "the others": {
        "normalization": None, "continuation_prefix": "", "word_end_marker": "_",
        "mark_final_word": False, "split_punctuation": False, "split_chinese_characters": False,
        "strict_vocabulary": False,
    },
    "build_vocab.py": {"unknown": "character", "jamo_fallback": True},
}  # fmt: skip


def check_all(tokenizer, texts):
    for first in range(0, len(texts), AT_ONCE):
        part = texts[first : first + AT_ONCE]
        for text, ids in zip(part, check_graph(tokenizer, part), strict=True):
            check_offsets(tokenizer, text, ids)
            check_round_trip(tokenizer, text, ids)


def test_every_tokenizer_on_any_text(tmp_path):
    """Those with every switch, in all combinations that matter together."""
    strings = []

    # One string an example: of a list of them most would be equal.
    @settings(
        max_examples=STRINGS, derandomize=True, deadline=None, database=None,
        phases=[Phase.generate],
    )  # fmt: skip
    @given(ANY_TEXT)
    def collect(text):
        strings.append(text)

    collect()
    assert len(strings) == STRINGS and len(set(strings)) > 0.9 * STRINGS
    assert {ord(character) >> 16 for text in strings for character in text} == set(range(17))
    for _, tokenizer in [*korean_tokenizers(tmp_path), *full_tokenizers(tmp_path)]:
        check_all(tokenizer, [*TEXTS, *strings])


@pytest.fixture(scope="module")
def real_tokenizers(tmp_path_factory):
    source = SHARED / "data" / "vocabs" / "koelectra.txt"
    if not source.is_file():
        pytest.skip("the real vocabularies are not on this machine")
    lines = source.read_text(encoding="utf-8").splitlines()
    lines = list(dict.fromkeys([*lines, *JAMO, "\u2581", "##\u2581", "##다\u2581", "##다_"]))
    made = {}
    for prefix in ("##", ""):
        pieces = dict.fromkeys(prefix + p[2:] if p.startswith("##") else p for p in lines)
        path = tmp_path_factory.mktemp("real") / "vocab.txt"
        write_lines(path, filter(None, pieces))
        for name, switches in REAL.items():
            if switches.get("continuation_prefix", "##") == prefix:
                made[name] = KoreanTokenizer(path, **switches)
        if prefix:
            made["full"] = FullTokenizer(path)
    return made


def test_every_option_is_set_in_two_ways(real_tokenizers):
    for option in vars(KoreanTokenizer.options_type()):
        assert len({real_tokenizers[name].config()[option] for name in REAL}) > 1, option


@pytest.mark.parametrize("name", [*REAL, "full"])
def test_all_real_text(real_tokenizers, name):
    check_all(real_tokenizers[name], real_texts())


def real_texts():
    """All reviews of NSMC, and Wikipedia."""
    reviews = [SHARED / "data" / "nsmc" / f"ratings_{part}.txt" for part in ("test", "train")]
    wikipedia = SHARED / "data" / "kowiki" / "kowiki_2MB.txt"
    if not all(path.is_file() for path in (*reviews, wikipedia)):
        pytest.skip("the real text is not on this machine")
    lines = [line for path in reviews for line in path.read_text(encoding="utf-8").split("\n")]
    texts = [line.split("\t")[1] for line in lines if line]
    assert len(texts) > 200_000
    return texts + wikipedia.read_text(encoding="utf-8").split("\n")
