"""The build_vocab program, which learns a vocabulary from text or compares vocabularies."""

import dataclasses
import functools
import importlib.util
import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.folders import make_writable
from create_pretraining_data.engine.plain_text import TEXT_KEY
from create_pretraining_data.engine.splitting import FORMATS
from run_scripts.flags import groups
from run_scripts.flags.corpora import find_texts
from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, FOLDER, NOTHING, split_list

if TYPE_CHECKING:
    from tokenization.vocab_learning.learn import LearningSettings


@dataclasses.dataclass(frozen=True)
class BuildVocabFlags:
    """Learns a vocabulary of Korean morphemes: vocab.txt, tokenizer_config.json and report.json.

    The tokens are nouns, particles, endings and stems. If the package kiwipiepy (the extra
    "korean") is installed, its analyser finds them in the text. The tokenizer that uses the
    vocabulary needs no analyser. With --compare, the program instead prints how existing
    vocabularies tokenize a few sentences.
    """

    EXAMPLE = "--input_file='data/*.txt' --output_dir=data/vocab --vocab_size=32000"

    input_file: str = groups.FILES.optional(
        "The text to read: comma-separated files, folders or globs. Files hold plain text or "
        'JSON lines, optionally gzipped. With the pip extra "parquet", the program also reads'
        " Parquet files and folders saved by the Hugging Face datasets library. Required "
        "unless --compare is given.",
        is_input=True,
        is_path=True,
        not_with=("compare",),
    )
    input_format: str = groups.FILES.optional(
        "The format of the input files. text: lines of plain text. jsonl: one JSON object per "
        "line, with the text under --text_key. Default: jsonl for .jsonl, .ndjson and .json "
        "files, gzipped or not, else text.",
        choices=FORMATS,
    )
    text_key: str = groups.FILES.flag(
        TEXT_KEY,
        "The JSON key or the Parquet or Arrow column that holds the text. Use dots for nested "
        "keys, such as meta.body.",
    )
    output_dir: str = groups.OUTPUT.output_folder(
        "The folder to write the tokenizer to; other programs take it as --tokenizer_dir. "
        "Required unless --compare is given.",
        not_with=("compare",),
    )
    overwrite: bool = groups.OUTPUT.flag(
        False,
        "Replace another vocabulary that --output_dir already holds. Default: keep it and "
        "stop with an error.",
    )
    compare: str = groups.VOCABULARY.optional(
        "Print how existing tokenizers split the sentences of --text, instead of learning a "
        "vocabulary. Give comma-separated paths: tokenizer folders, vocab.txt files, "
        "SentencePiece .model files or Hugging Face tokenizer.json files.",
        is_input=True,
        takes=(FILE, FOLDER, NOTHING),
    )
    text: str = groups.VOCABULARY.optional(
        "The sentences to tokenize, separated by |. Default: five built-in sentences.",
        needs=("compare",),
    )
    vocab_size: int = groups.VOCABULARY.flag(
        32000, "The maximum number of tokens in the vocabulary.", least=1
    )
    analyser: str = groups.VOCABULARY.optional(
        "How to find morphemes. kiwi: with the analyser kiwipiepy. none: by word statistics and a "
        "list of particles and endings. Default: kiwi if kiwipiepy is installed, else none.",
        choices=("kiwi", "none"),
    )
    normalization: str = groups.VOCABULARY.flag(
        "NFC",
        "The Unicode normalization. NFC composes Hangul. NFKC also replaces full-width letters, "
        "circled numbers and ligatures with plain characters but, unlike standard NFKC, keeps "
        "standalone jamo such as ㅋㅋ.",
        choices=("NFC", "NFKC"),
        not_with=("compare",),
    )
    unknown: str = groups.VOCABULARY.flag(
        "character",
        "How to tokenize a character that the vocabulary lacks, other than a Hangul syllable,"
        " which is split into jamo. character: as [UNK]. bytes: as one token per UTF-8 byte.",
        choices=("character", "bytes"),
        not_with=("compare",),
    )
    num_unused: int = groups.VOCABULARY.flag(
        0,
        "The number of placeholder tokens ([unused0], [unused1], ...) to reserve for words added "
        "later.",
        least=0,
    )
    user_symbols: str = groups.VOCABULARY.optional(
        "Comma-separated tokens to include in the vocabulary. Write ##X if X continues a word."
    )
    character_coverage: float = groups.VOCABULARY.flag(
        0.9995,
        "The share of the text's characters that the vocabulary must cover. A rare Hangul "
        "syllable counts as covered, because it can be written as jamo.",
        above=0,
        most=1,
    )
    do_lower_case: bool = groups.TOKENIZER.flag(
        False,
        "Lower-case the text before learning; the saved tokenizer also lower-cases its input.",
        not_with=("compare",),
    )
    most_megabytes: int = groups.VOCABULARY.flag(
        32,
        "The maximum number of megabytes of text to learn from. If there is more text, lines are "
        "sampled.",
        least=1,
    )
    random_seed: int = flag(12345, "The seed for sampling lines.", least=-(2**63), most=2**63 - 1)
    strict_utf8: bool = groups.COMPATIBILITY.flag(
        False, "Accepted but has no effect: invalid UTF-8 is an error.", no_effect=True
    )
    num_threads: int = groups.THREADS.flag(
        2,
        "The number of threads for the morpheme analyser. Does not affect the vocabulary.",
        least=1,
    )


# With up to this much text, models gained nothing from more than this many tokens; more text was
# not measured (docs/tokenizers.md, "Whether it helps a model").
ENOUGH_PIECES, MEASURED_BYTES = 16_000, 37_000_000

# They have particles, a contraction, a compound, chat, digits, Latin letters and a rare syllable.
SENTENCES = (
    "할머니께서는 어제 시장에서 사과를 사셨다.",
    "공부했던 내용을 다시 정리해서 친구들에게 보냈어요.",
    "우리나라의 민주주의는 시민들로부터 시작되었다.",
    "와 이 영화 진짜 꿀잼ㅋㅋㅋ 두 번 봤는데도 안 질림ㅠㅠ",
    "2024년형 GPU 16대로 BERT를 학습시켰더니 뷁!",
)


def build_vocab(flags: BuildVocabFlags) -> None:
    """Learns and writes a vocabulary, or compares vocabularies."""
    if flags.compare:
        return compare(flags)
    for name in ("input_file", "output_dir"):
        if not getattr(flags, name):
            raise InputError(f"--{name} must be given (or --compare alone). Received: no --{name}")
    started = time.monotonic()
    settings = make_settings(flags)
    files = find_texts(flags.input_file)

    from create_pretraining_data.engine.plain_lines import open_texts
    from run_scripts.vocabulary_folder import KEY, is_up_to_date, make_manifest
    from tokenization.vocab_learning.learn import learn_vocabulary, write_vocabulary

    make_writable(
        flags.output_dir, "--output_dir must be a folder that can be created and written to"
    )
    check_not_read(flags.output_dir, files)
    manifest = make_manifest(flags, settings, files)
    if not flags.overwrite and is_up_to_date(flags.output_dir, manifest):
        print(f"up to date, learned from this text with these settings: {flags.output_dir}")
        return
    texts = open_texts(files, flags.input_format, flags.text_key)
    learned = learn_vocabulary(texts, settings)
    learned.report[KEY] = manifest
    write_vocabulary(learned, flags.output_dir)
    print(summary(learned.report, time.monotonic() - started))
    if has_too_many_pieces(learned.report):
        print(
            f"note: with up to {MEASURED_BYTES / 1e6:.0f} MB of text, models were no better for "
            f"more than {ENOUGH_PIECES:,} tokens: consider --vocab_size={ENOUGH_PIECES} "
            "(docs/tokenizers.md)"
        )
    print(f"written: {flags.output_dir}")


def make_settings(flags: BuildVocabFlags) -> "LearningSettings":
    """Converts the flags to `LearningSettings`; prints which analyser it chose."""
    from tokenization.vocab_learning.learn import LearningSettings

    analyser = flags.analyser
    # With either analyser, models match or beat the usual WordPiece on every task, and neither is
    # better than the other (docs/results.md, What pays). With kiwipiepy, tokens follow morphemes
    # more closely (docs/tokenizers.md).
    if analyser is None:
        is_installed = importlib.util.find_spec("kiwipiepy") is not None
        analyser = "kiwi" if is_installed else "none"
        print(
            "analyser: kiwi, because kiwipiepy is installed"
            if is_installed
            else "analyser: none, because kiwipiepy is not installed (pip install -e '.[korean]' "
            "gives tokens that follow morphemes more closely)"
        )
    names = {field.name for field in dataclasses.fields(LearningSettings)}
    given = {name: value for name, value in vars(flags).items() if name in names}
    symbols = [part.strip() for part in (flags.user_symbols or "").split(",")]
    given |= {"analyser": analyser, "user_symbols": tuple(filter(None, symbols))}
    return LearningSettings(**given)


def check_not_read(output_dir: str, files: Iterable[str]) -> None:
    """Raises an `InputError` if the vocabulary would overwrite a file of the text."""
    from tokenization.vocab_learning.learn import CONFIG_FILE, REPORT_FILE, VOCABULARY_FILE

    for name in (VOCABULARY_FILE, CONFIG_FILE, REPORT_FILE):
        path = os.path.join(output_dir, name)
        for source in files:
            if os.path.exists(path) and os.path.samefile(path, source):
                raise InputError(
                    f"--output_dir must not hold the text under {name}. Received: {source}"
                )


def summary(report: Mapping[str, Any], seconds: float) -> str:
    """Returns a one-line summary of text and vocabulary."""
    text, vocabulary = report["text"], report["vocabulary"]
    requested = report["settings"]["vocab_size"]
    fewer = f" (of {requested:,}: the text has no more)" if vocabulary["lines"] < requested else ""
    parts = [
        f"{text['sampled_lines']:,} of {text['lines']:,} lines",
        f"{text['words']:,} words, {text['distinct_words']:,} different",
        f"{vocabulary['lines']:,} tokens{fewer}",
        f"{report['character_coverage']:.2%} of the characters",
        f"{report['pieces_per_word']:.2f} tokens per word" if text["words"] else "no short word",
        f"{seconds:.0f} s",
    ]
    return ", ".join(parts)


def has_too_many_pieces(report: Mapping[str, Any]) -> bool:
    """Returns True if fewer tokens are known to be as good for the text in a report."""
    pieces, text = report["vocabulary"]["lines"], report["text"]
    return pieces > ENOUGH_PIECES and text["bytes"] <= MEASURED_BYTES


def compare(flags: BuildVocabFlags) -> None:
    """Prints how each vocabulary tokenizes each sentence."""
    from tokenization.comparison import open_vocabularies

    paths = [flags.compare] if os.path.exists(flags.compare) else split_list(flags.compare)
    if not paths:
        raise InputError(f"--compare must name a vocabulary. Received: {flags.compare!r}")
    vocabularies = open_vocabularies(paths)
    sentences = flags.text.split("|") if flags.text else SENTENCES
    names = [f"{opened.name} ({opened.kind}, {opened.size:,})" for opened in vocabularies]
    width = max(map(len, names))
    for sentence in filter(None, (sentence.strip() for sentence in sentences)):
        print(sentence)
        for name, vocabulary in zip(names, vocabularies, strict=True):
            pieces = vocabulary.pieces(sentence)
            print(f"  {name:{width}}  {len(pieces):3}  {' '.join(pieces)}")
        print()


main = functools.partial(run_program, build_vocab, BuildVocabFlags)

if __name__ == "__main__":
    sys.exit(main())
