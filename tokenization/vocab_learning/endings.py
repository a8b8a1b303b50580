"""Marks where stems, particles and endings meet inside words, by statistics, without an analyser.

Particles and endings are a closed class, so they are listed here (`FOLLOWS`); stems are an open
class, so they are learned. A stem is known by the company it keeps: 서울 occurs before 은, 에서,
의, 까지 and forty more, while 회의 ends in what looks like 의, but is followed by 를 and 에서 as
nouns are. Expectation maximization over the distinct words weighs the two; a word's own vote is
left out, since otherwise the best reading of every word would be a bare stem.
"""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from tokenization.vocab_learning.morphemes import BOUNDARY, EITHER, FREE, INSIDE

PARTICLES = """
    에 에서 에게 에게서 께 께서 한테 한테서 더러 로 으로 로서 으로서 로써 으로써 와 과 하고 랑 이랑
    만 까지 부터 조차 마저 밖에 뿐 처럼 같이 보다 만큼 마다 라도 이라도 대로 치고
"""
LAST_PARTICLES = """
    은 는 이 가 을 를 의 도 나 이나 란 이란 야 이야 든지 이든지 커녕 요 며 이며
"""
PARTICLES_AFTER_ENDINGS = """
    은 는 도 만 까지 부터 조차 요 의 에 이 가 을 를 로 에서 으로 와 과 보다 나
"""
ENDINGS = """
    다 고 며 면서 지만 는데 은데 면 으면 으며 으면서 니 으니 니까 으니까 므로 으므로 어 아 여 어서
    아서 여서 어야 아야 여야 어도 아도 여도 게 지 도록 려고 으려고 려 으려 러 으러 거나 든 든지 던
    는 은 을 기 음 는다 습니다 냐 느냐 는가 은가 던가 자 자고 라 어라 아라 라고 다고 다는 다며 라며
    라는 자는 는지 은지 을지 던지 더니 네 네요 어요 아요 여요 죠 지요 고자 느라 다가 자마자 을수록
    는다고 는다는 는다면 다면 라면 더라도 구나 군 군요 거든 을까 나 되 듯 듯이 기에 을래 을게 세요
    으세요 십시오 으십시오 소 느니 건만 거니와 노라 리라 으리라
"""
PREFINAL_ENDINGS = "었 았 였 겠 시 으시 었었 았었 셨 으셨"
NOUN_SUFFIXES = "들 적 님 씩 쯤 째 가량"
VERB_SUFFIXES = "하 되 시키 당하 받 롭 스럽 스러 있 없 지 거리 대"
AUXILIARIES = "있 없 않 하 되 지 주 보 버리"
# Suffixes contracted with their endings: 하 + ㄴ, 되 + ㄴ다, 이 + ㅂ니다.
CONTRACTIONS = """
    한 할 함 해 된 될 됨 돼 인 일 임 시킨 시킬 시켜 스런 로운 스러운 로워 스러워 한다 된다 합니다
    됩니다 입니다 하여 되어 인데 한데 인지 한지 할지 될지 일지 한다고 한다는 한다면 된다고 된다는
    해서 해도 해야 돼서 인가 한가 할까 일까
"""
CONTRACTIONS_BEFORE_ENDINGS = "했 됐 였 시켰 당했 스러웠 로웠 받았"

# Conjunctions, adverbs, determiners and pronouns that end as if they had a tail.
WHOLE_WORDS = """
    그러나 그리고 그러므로 따라서 그런데 그래서 그러면 하지만 또한 또는 혹은 오히려 대체로 제대로
    비로소 바로 서로 여러 모든 다만 거의 아직 너무 가장 물론 만약 결국 아마 어느 어떤 이런 그런
    저런 이러한 그러한 저러한 새로 스스로 별로 실로 때로 함께 모두 먼저 누구 무엇 우리 여기 거기
    저기 이미 다시 특히 더욱 매우 보다 마치 과연 차마 오직 항상 아무리 도무지 게다가
"""

NOUN, VERB, PREFINAL, ENDING, PARTICLE, LAST = range(6)

# (the state before, the forms, the state after)
FOLLOWS = (
    (NOUN, PARTICLES, PARTICLE),
    (NOUN, LAST_PARTICLES, LAST),
    (PARTICLE, PARTICLES, PARTICLE),
    (PARTICLE, LAST_PARTICLES, LAST),
    (ENDING, PARTICLES_AFTER_ENDINGS, LAST),
    (NOUN, NOUN_SUFFIXES, NOUN),
    (NOUN, VERB_SUFFIXES, VERB),
    (NOUN, "이", PREFINAL),  # the copula
    (PARTICLE, "이", PREFINAL),
    (NOUN, CONTRACTIONS, ENDING),
    (NOUN, CONTRACTIONS_BEFORE_ENDINGS, PREFINAL),
    (VERB, ENDINGS, ENDING),
    (VERB, PREFINAL_ENDINGS, PREFINAL),
    (PREFINAL, ENDINGS, ENDING),
    (PREFINAL, PREFINAL_ENDINGS, PREFINAL),
    (ENDING, AUXILIARIES, VERB),
)
# (the state before, a form) -> the states after
FOLLOWERS: dict[tuple[int, str], list[int]] = {}
for _before, _forms, _after in FOLLOWS:
    for _form in _forms.split():
        FOLLOWERS.setdefault((_before, _form), []).append(_after)
FORMS = frozenset(form for _, form in FOLLOWERS)
TAILLESS = frozenset(WHOLE_WORDS.split())

MAY_END = (NOUN, ENDING, PARTICLE, LAST)

LONGEST_FORM = 4  # 으십시오
LONGEST_TAIL = 8  # 에서부터였습니다
READINGS_OF_A_TAIL = 6  # the shortest readings; the others make nearly the same cuts

ROUNDS = 2

# A stem of n syllables that occurs in no other word weighs SYLLABLES ** -n; SYLLABLES is about the
# number of common syllables (their entropy in running text is 7 to 8 bits).
SYLLABLES = 200

# Before the first round, each syllable in its tail makes a reading this many times as likely.
TAIL_GAIN = 12

# The probability that a stem itself ends in what can be read as a tail (회의, 정도).
STEM_WITH_TAIL = 0.05

# A stem of at least four syllables may be a compound if each half is the stem of at least five
# words.
STEM_OF_A_COMPOUND, SHORTEST_COMPOUND = 5, 4

# Runs of Hangul syllables, digits, jamo (ㅋㅋㅋ, ㅠㅠ) or other letters, or of the same symbol.
PART = re.compile(
    r"[\uac00-\ud7a3]+|\d+|[\u3131-\u318e]+|(?:(?![\uac00-\ud7a3\u3131-\u318e])[^\W\d_])+|(.)\1*",
    re.DOTALL,
)
HANGUL = re.compile("[\uac00-\ud7a3]+")


def mark_by_endings(words: Counter[str]) -> Counter[tuple[str, str]]:
    """Marks the places between the characters of words, as `mark_places` does.

    Takes the number of occurrences of each word and returns the number for each (word, marks).
    """
    parts_of = {word: _parts(word) for word in sorted(words)}
    stems = sorted({part for parts in parts_of.values() for part, is_tail in parts if not is_tail})
    cuts, counts = read_words(filter(HANGUL.fullmatch, stems))
    marked: Counter[tuple[str, str]] = Counter()
    for word, parts in parts_of.items():
        marks = ""
        for part, is_tail in parts:
            if is_tail:
                marks += _marks_of_cut(_tails(part, NOUN)[0], {})
            elif part in cuts:
                marks += _marks_of_cut(cuts[part], counts)
            else:
                marks += FREE * (len(part) - 1)  # no Hangul syllables: a piece may be any part
            marks += BOUNDARY
        marked[word, marks[:-1]] += words[word]
    return marked


def _parts(word):
    """Splits a word into the runs of `PART`, each as (run, whether all of it is a tail)."""
    parts = [match[0] for match in PART.finditer(word)]
    return [
        (part, i > 0 and bool(HANGUL.fullmatch(part)) and bool(_tails(part, NOUN)))
        for i, part in enumerate(parts)
    ]


def _marks_of_cut(cut, counts):
    """Returns the marks of a run of Hangul whose morphemes are `cut`."""
    marks = BOUNDARY.join(INSIDE * (len(morpheme) - 1) for morpheme in cut)
    stem = cut[0]
    if len(stem) < SHORTEST_COMPOUND:
        return marks
    joints = [
        EITHER
        if min(counts.get(stem[:i], 0), counts.get(stem[i:], 0)) >= STEM_OF_A_COMPOUND
        else INSIDE
        for i in range(2, len(stem) - 1)
    ]
    return INSIDE + "".join(joints) + INSIDE + marks[len(stem) - 1 :]


@functools.lru_cache(maxsize=1 << 18)  # tails repeat; the bound limits memory
def _tails(text: str, before: int) -> tuple[tuple[str, ...], ...]:
    """Reads a text as particles and endings after the state `before`; shortest readings first."""
    if not text:
        return ((),) if before in MAY_END else ()
    readings = set()
    for end in range(1, min(LONGEST_FORM, len(text)) + 1):
        for after in FOLLOWERS.get((before, text[:end]), ()):
            readings |= {(text[:end], *rest) for rest in _tails(text[end:], after)}
    return tuple(sorted(readings, key=lambda reading: (len(reading), reading)))[:READINGS_OF_A_TAIL]


def _readings(word):
    """Lists every way to read a word: as a stem alone, then as a stem with a tail."""
    readings = [(word,)]
    if word in TAILLESS:
        return readings
    for start in range(max(1, len(word) - LONGEST_TAIL), len(word)):
        tails = {*_tails(word[start:], NOUN), *_tails(word[start:], VERB)}
        readings += [(word[:start], *tail) for tail in sorted(tails)]
    return readings


def _has_tail(stem):
    """Returns True if a stem ends in a form that could begin a tail (있었, 생각하)."""
    if stem in TAILLESS:
        return False
    longest = min(len(stem) - 1, LONGEST_FORM)
    return any(stem[-length:] in FORMS for length in range(1, longest + 1))


def read_words(words: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Chooses the likeliest reading of each distinct word of Hangul.

    Returns:
        The morphemes of each word, and the expected number of words of each stem.
    """
    readings_of = {word: _readings(word) for word in words}
    beliefs = {
        word: _normalized([TAIL_GAIN ** (len(word) - len(reading[0])) for reading in readings])
        for word, readings in readings_of.items()
    }
    priors = {
        word: [STEM_WITH_TAIL if _has_tail(reading[0]) else 1.0 for reading in readings]
        for word, readings in readings_of.items()
    }
    stems = {}
    for _ in range(ROUNDS):
        stems, steps, leaving = _expected_counts(readings_of, beliefs)
        for word, readings in readings_of.items():
            if len(readings) == 1:
                continue
            chances = []
            for reading, belief, prior in zip(readings, beliefs[word], priors[word], strict=True):
                others = max(0.0, stems[reading[0]] - belief)  # without the word's own vote
                chance = prior * (others + SYLLABLES ** -len(reading[0]))
                for step in _steps(reading):
                    chance *= steps[step] / leaving[step[0]] if step in steps else 0.0
                chances.append(chance)
            if sum(chances) > 0:
                beliefs[word] = _normalized(chances)
    best = {
        word: readings[max(range(len(readings)), key=beliefs[word].__getitem__)]
        for word, readings in readings_of.items()
    }
    return best, stems


def _normalized(chances):
    total = sum(chances)
    return [chance / total for chance in chances]


def _steps(reading):
    """Returns the transitions of a tail: from the stem ("") to each morpheme to the end (None)."""
    tail = ["", *reading[1:], None]
    return zip(tail, tail[1:], strict=False)


def _expected_counts(readings_of, beliefs):
    stems: defaultdict[str, float] = defaultdict(float)
    steps: defaultdict[tuple[str, str | None], float] = defaultdict(float)
    leaving: defaultdict[str, float] = defaultdict(float)
    for word, readings in readings_of.items():
        for reading, belief in zip(readings, beliefs[word], strict=True):
            stems[reading[0]] += belief
            for step in _steps(reading):
                steps[step] += belief
                leaving[step[0]] += belief
    return stems, steps, leaving
