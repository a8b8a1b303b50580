"""Tagged sentences in their published formats; one line of error for broken ones."""

import unicodedata

import pytest

from bert_common.errors import InputError
from finetuning.ner.data import (
    FORMATS,
    find_tags,
    make_ner_dataset,
    read_tagged,
    spell,
    to_iob2,
)
from finetuning.ner.untagged import read_dataset_split
from tests.support.paths import SHARED
from tests.support.refusals import refused
from tests.support.task_data import KLUE_HEADER, klue_sentence


def columns(*rows):
    return "".join("\t".join(row.split()) + "\n" for row in rows)


NAVER = columns(
    "1 비토리오 PER_B", "2 양일 DAT_B", "3 만에 -", "4 용퇴, -", "", "",
    "1 LG PER_I", "2 19mm입니다 PER_I", "3 # NUM_B",
)  # fmt: skip

# (format, split) -> the content of its file; for each sentence its id (a number: of the line), its
# text, the text of the units, their tags; how many tags I- began with nothing
PUBLISHED = {
    ("klue-ner", "dev"): (
        KLUE_HEADER
        + klue_sentence("00000-wikitree", "서울 역에서#|B-LC I-LC I-LC I-LC O O O")
        + klue_sentence("00001-nsmc", " 김 2살|O B-PS B-QT I-QT I-QT"),
        [
            ("klue-ner-v1_dev_00000-wikitree", "서울 역에서#",
             "서 울 역 에 서 #", "B-LC I-LC I-LC O O O"),
            # As published: the entity began with the space.
            ("klue-ner-v1_dev_00001-nsmc", " 김 2살", "김 2 살", "B-PS I-QT I-QT"),
        ],
        1,
    ),
    ("naver-ner", "train"): (
        NAVER,
        [
            (1, "비토리오 양일 만에 용퇴,", "비토리오 양일 만에 용퇴,", "B-PER B-DAT O O"),
            (7, "LG 19mm입니다 #", "LG 19mm입니다 #", "B-PER I-PER B-NUM"),
        ],
        1,
    ),
    ("conll-2003", "train"): (
        "-DOCSTART- -X- O O\n\n"
        "EU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n"
        "Peter NNP I-NP I-PER\nBlackburn NNP I-NP I-PER\nAnn NNP I-NP B-PER\n",
        [
            (3, "EU rejects", "EU rejects", "B-ORG O"),
            (6, "Peter Blackburn Ann", "Peter Blackburn Ann", "B-PER I-PER B-PER"),
        ],
        2,
    ),
    ("conll-2003", "test"): (
        "-DOCSTART- -X- -X- O\n\nLondon NNP B-NP B-LOC\n", [(3, "London", "London", "B-LOC")], 0,
    ),
    ("conll", "dev"): (
        "\nB-1\tO\r\n나무 \tB-식물 \r\n \t \r\n##\tO\n",
        [(2, "B-1 나무", "B-1 나무", "O B-식물"), (5, "##", "##", "O")], 0,
    ),
}  # fmt: skip


def write(folder, form, split, content):
    path = folder / FORMATS[form].files[split]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_format_has_a_small_file():
    assert {form for form, _ in PUBLISHED} == set(FORMATS)


@pytest.mark.parametrize("form, split", PUBLISHED)
def test_published_format(tmp_path, form, split):
    """In the task's own folder and in one beside those of other tasks."""
    content, expected, begun = PUBLISHED[form, split]
    folder = tmp_path / FORMATS[form].folder
    path = write(folder, form, split, content)
    for place in (tmp_path, folder):
        sentences, found = read_tagged(FORMATS[form], split, str(place))
        assert found == begun and len(sentences) == len(expected)
        for sentence, (name, text, units, tags) in zip(sentences, expected, strict=True):
            assert sentence.id == (name if isinstance(name, str) else f"{path} line {name}")
            assert sentence.text == text
            assert [text[start:end] for start, end in sentence.units] == units.split()
            assert list(sentence.tags) == tags.split()


@pytest.mark.parametrize(
    "tags, expected",
    (
        ("I-A I-A O I-A", "B-A I-A O B-A"),
        ("I-A B-A I-A I-B", "B-A B-A I-A B-B"),
        ("", ""),
    ),
)
def test_to_iob2(tags, expected):
    assert to_iob2(tags.split()) == expected.split()


def test_tags_are_those_of_the_training_file_or_of_the_format(tmp_path):
    form = FORMATS["naver-ner"]
    write(tmp_path, "naver-ner", "train", NAVER)
    write(tmp_path, "naver-ner", "dev", columns("1 가 NUM_I", "2 나 TIM_B"))
    sentences, _ = read_tagged(form, "train", str(tmp_path))
    tags = find_tags(sentences)
    assert tags == ("B-DAT", "I-DAT", "B-NUM", "I-NUM", "B-PER", "I-PER", "O")
    assert [spell(form, tag) for tag in tags[3:]] == ["NUM_I", "PER_B", "PER_I", "-"]
    assert FORMATS["klue-ner"].tags == (
        *("B-PS", "I-PS", "B-LC", "I-LC", "B-OG", "I-OG"),
        *("B-DT", "I-DT", "B-TI", "I-TI", "B-QT", "I-QT", "O"),
    )
    read_tagged(form, "dev", str(tmp_path))
    with pytest.raises(InputError, match="dev_data line 2: .* DAT_B, .*PER_I, -. .*'TIM_B'"):
        read_tagged(form, "dev", str(tmp_path), tags)


def test_kinds_whose_hangul_is_taken_apart_are_the_same(tmp_path):
    """As macOS names files; the tags look the same."""
    apart = unicodedata.normalize("NFD", "여수 B-장소\n시 I-장소\n")
    write(tmp_path, "conll", "train", "서울 B-장소\n\n" + apart)
    write(tmp_path, "conll", "dev", apart)
    dataset = make_ner_dataset(FORMATS["conll"], str(tmp_path))
    assert dataset.tags == ("B-장소", "I-장소", "O")
    sentences, _ = read_tagged(FORMATS["conll"], "dev", str(tmp_path), dataset.tags)
    assert sentences[0].tags == ("B-장소", "I-장소")
    # Models of transformers and of earlier versions may have them taken apart.
    tags = tuple(unicodedata.normalize("NFD", tag) for tag in dataset.tags)
    texts = ("시 B-장소\n시 I-장소\n", "시 장소_B\n시 장소_I\n")
    for text in (*texts, *(unicodedata.normalize("NFD", text) for text in texts)):
        write(tmp_path, "conll", "dev", text)
        sentences, _ = read_tagged(FORMATS["conll"], "dev", str(tmp_path), tags)
        assert sentences[0].tags == tags[:2]
    write(tmp_path, "conll", "dev", "시 B-사람\n")
    with pytest.raises(InputError, match=f"one of {', '.join(tags)}. Received: 'B-사람'"):
        read_tagged(FORMATS["conll"], "dev", str(tmp_path), tags)


@pytest.mark.parametrize(
    "form, content, words",
    (
        (
            "klue-ner",
            KLUE_HEADER + "\n\n",
            ("klue-ner-v1.1_train.tsv", "must hold a token", "none"),
        ),
        ("klue-ner", KLUE_HEADER + "서\tB-LC\n울\n", ("line 7", "2 columns", "'울'")),
        ("klue-ner", "서\tB-LC\tO\n", ("line 1", "2 columns", "'서\\tB-LC\\tO'")),
        ("klue-ner", "\tB-LC\n", ("line 1", "2 columns")),
        ("klue-ner", "서울\tB-LC\n", ("line 1", "one character", "'서울'")),
        ("klue-ner", "서\tB-LOC\n", ("line 1", "one of B-PS", "I-QT, O.", "'B-LOC'")),
        ("klue-ner", "서\tB-LC\n".encode() + b"\xff\tO\n", ("line 2", "UTF-8", "0xff")),
        ("naver-ner", columns("1 가 -", "2 나"), ("train_data line 2", "3 columns", "'2\\t나'")),
        ("naver-ner", columns("1 가 B-PER"), ("line 1", "X_B, X_I, -.", "'B-PER'")),
        ("naver-ner", "1\t\t-\n", ("line 1", "3 columns", "'1\\t\\t-'")),
        ("conll-2003", "EU NNP I-NP I-ORG\nrejects VBZ I-VP\n", ("line 2", "4 columns")),
        ("conll-2003", "EU NNP I-NP I-GPE\n", ("line 1", "I-MISC, O.", "'I-GPE'")),
        ("conll", "EU\n", ("train.txt line 1", "2 columns", "'EU'")),
        ("conll", "EU S-ORG\n", ("line 1", "B-X, I-X, O.", "'S-ORG'")),
    ),
)
def test_what_is_broken(tmp_path, form, content, words):
    write(tmp_path, form, "train", content)
    with refused(*words):
        read_tagged(FORMATS[form], "train", str(tmp_path))


@pytest.mark.parametrize("tags", ((), ("O",)))
def test_tags_of_no_entity_are_refused(tmp_path, tags):
    write(tmp_path, "naver-ner", "train", columns("1 가 -", "2 나 -"))
    with pytest.raises(InputError, match="train_data in .* must hold an entity. Received: O alone"):
        make_ner_dataset(FORMATS["naver-ner"], str(tmp_path), tags)


@pytest.mark.slow
def test_the_real_file():
    """Two entities begin with a space there, which is why they are none for KLUE's program."""
    if not (SHARED / "data/klue").exists():
        pytest.skip("the published file is not here")
    form = FORMATS["klue-ner"]
    sentences, begun = read_tagged(form, "dev", str(SHARED / "data/klue"))
    assert (len(sentences), begun, len({sentence.id for sentence in sentences})) == (5000, 2, 5000)
    assert set(find_tags(sentences)) == set(form.tags)
    assert sum(len(sentence.units) for sentence in sentences) == 225_550
    slips = [s for s in sentences if to_iob2(s.tags) != list(s.tags)]
    assert len(slips) == 2
    folder = str(SHARED / "data/klue")
    split, told = read_dataset_split(make_ner_dataset(form, folder), "dev", folder)
    said = "I- tags without an entity to continue, not counted as entities"
    assert split == sentences and told == {said: 2}
