"""Imports every public name and uses some; mypy reads it, nothing runs it.

python -m mypy        strict, as pyproject.toml says
"""
# ruff: noqa: F401 (mypy looks for the names that nothing uses)

from albert_tf import AlbertConfig, AlbertModel
from bert_tf import (
    AdamWeightDecay,
    BertConfig,
    BertModel,
    Lamb,
    PretrainingModel,
    WarmupPolynomialDecay,
    load_google_checkpoint,
)
from electra_tf import ElectraConfig, ElectraModel, ReplacedTokensModel
from korean_bert.loading import load_model
from korean_bert.model import Model
from korean_bert.results import (
    Answered,
    Attention,
    Chosen,
    Classified,
    FoundAnswer,
    FoundEntity,
    Guess,
    HiddenStates,
    Hit,
    Neighbour,
    Tagged,
)
from tokenization import (
    SPIECE_UNDERLINE,
    BasicTokenizer,
    FullTokenizer,
    HuggingFaceTokenizer,
    InputError,
    KoreanTokenizer,
    SentencePieceTokenizer,
    WordpieceTokenizer,
    convert_by_vocab,
    convert_ids_to_tokens,
    convert_to_unicode,
    convert_tokens_to_ids,
    encode_ids,
    encode_pieces,
    load_tokenizer,
    load_vocab,
    preprocess_text,
    printable_text,
    save_tokenizer,
    validate_case_matches_checkpoint,
    whitespace_tokenize,
)


def use_tokenizers(folder: str) -> list[int]:
    """Every kind of tokenizer, and what they have in common."""
    kinds = [
        load_tokenizer(folder),
        FullTokenizer(f"{folder}/vocab.txt", do_lower_case=False),
        KoreanTokenizer(f"{folder}/vocab.txt", jamo_fallback=True),
        HuggingFaceTokenizer(f"{folder}/vocab.txt"),
        SentencePieceTokenizer(f"{folder}/spiece.model"),
    ]
    ids: list[int] = []
    for tokenizer in kinds:
        pieces: list[str] = tokenizer.tokenize("한국어")
        ids += tokenizer.convert_tokens_to_ids(pieces)
        pieces = tokenizer.convert_ids_to_tokens(ids)
        own: tuple[list[int], list[tuple[int, int]]] = tokenizer.encode_with_offsets("한국어")
        words: list[list[str]] = tokenizer.tokenize_words("한국어")
        special: list[int | None] = [tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id]
        text: str = tokenizer.decode(ids) + tokenizer.fingerprint()
        batch = tokenizer.encode_batch(["한국어"])
        print(own, words, special, text, batch, tokenizer.vocab_size)
        save_tokenizer(tokenizer, folder)
    return ids


def use_loaded_model(folder: str) -> None:
    """The front door: what `search` returns depends on what it is asked."""
    model: Model = load_model(folder, tokenizer=load_tokenizer(folder))
    vectors = model.embed(["서울", ("부산", "바다")], "mean", layers=[0, -1], max_length=64)
    guesses: list[list[Guess]] = model.fill_mask("나는 학교[MASK] 갔다.", top=3, max_pieces=2)
    hits: list[Hit] = model.search("서울", ["부산", "바다"], top=1)
    several: list[list[Hit]] = model.search(["서울"], vectors)
    print(guesses[0][0].text, hits[0].score, several[0][0].place)


def use_predictions(model: Model) -> list[float]:
    """What a fine-tuned model says of a text depends on its task."""
    found = model.predict("서울은 넓다.", batch_size=8)
    if isinstance(found, Classified):
        return list(found.probabilities.values())
    if isinstance(found, Tagged):
        entities: tuple[FoundEntity, ...] = found.entities
        return [entity.probability for entity in entities]
    if isinstance(found, Answered):
        answer: FoundAnswer = found.answer
        return [answer.probability]
    return list(found.probabilities) if isinstance(found, Chosen) else []


def use_optimizer(steps: int) -> None:
    """A network, its configuration, an optimizer with its schedule."""
    config = BertConfig.from_preset("tiny", vocab_size=1000)
    sizes: dict[str, object] = config.to_dict()
    rate = WarmupPolynomialDecay(1e-4, num_train_steps=steps, num_warmup_steps=1)
    print(sizes, BertModel(config), AdamWeightDecay(rate))
