"""Uses every public name as a program with checked types would; mypy reads it, nothing runs it.

python -m mypy        strict, as pyproject.toml says
"""

from collections import OrderedDict

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


def use_reference_names(vocab_file: str) -> list[str]:
    """The names of google-research's tokenization.py."""
    vocab: OrderedDict[str, int] = load_vocab(vocab_file)
    words: list[str] = BasicTokenizer(do_lower_case=False).tokenize("한국어")
    pieces: list[str] = WordpieceTokenizer(vocab).tokenize(" ".join(words))
    ids: list[int] = convert_tokens_to_ids(vocab, pieces) + convert_by_vocab(vocab, pieces)
    pieces = convert_ids_to_tokens({index: token for token, index in vocab.items()}, ids)
    text: str = preprocess_text(convert_to_unicode(b"a")) + printable_text("b")
    validate_case_matches_checkpoint(True, None)
    model = SentencePieceTokenizer("spiece.model").sp_model
    found: list[int] = encode_ids(model, text)
    print(SPIECE_UNDERLINE, found, FullTokenizer.from_scratch(vocab_file, True, None))
    return pieces + whitespace_tokenize(text) + encode_pieces(model, text)


def use_loaded_model(folder: str) -> None:
    """The front door: what each method takes and returns."""
    model: Model = load_model(folder, tokenizer=load_tokenizer(folder))
    vectors = model.embed(["서울", ("부산", "바다")], "mean", layers=[0, -1], max_length=64)
    guesses: list[list[Guess]] = model.fill_mask("나는 학교[MASK] 갔다.", top=3, max_pieces=2)
    near: list[Neighbour] = model.nearest("서울", top=5)
    states: HiddenStates = model.hidden_states("서울", "부산")
    attention: Attention = model.attention("서울")
    hits: list[Hit] = model.search("서울", ["부산", "바다"], top=1)
    several: list[list[Hit]] = model.search(["서울"], vectors)
    print(model.similarity("서울", ["부산"]), hits[0].score, several[0][0].place)
    print(model.cluster(["서울", "부산"], k=2, seed=1).tolist())
    spans: list[tuple[int, int] | None] = [*states.spans, *attention.spans]
    piece: str = guesses[0][0].text + near[0].piece + states.pieces[0]
    print(vectors.shape, states.vectors.dtype, attention.probabilities, spans, piece)


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


def use_models(checkpoint: str) -> None:
    """Configurations, models, optimizers."""
    config = BertConfig.from_preset("tiny", vocab_size=1000)
    sizes: dict[str, object] = config.to_dict()
    encoder = BertModel(config)
    report = load_google_checkpoint(PretrainingModel(encoder), checkpoint, ("cls/",))
    loaded: tuple[str, ...] = report.loaded
    narrow: int = AlbertConfig.from_json_file("albert_config.json").embedding_size
    outputs = AlbertModel(AlbertConfig(vocab_size=1000))({"input_ids": [[2, 3]]})
    electra = ElectraModel(ElectraConfig.from_preset("small", vocab_size=1000))
    outputs |= ReplacedTokensModel(electra)({"input_ids": [[2, 3]]})
    rate = WarmupPolynomialDecay(1e-4, num_train_steps=10, num_warmup_steps=1)
    optimizers = [AdamWeightDecay(rate), Lamb(1e-3, weight_decay_rate=0.1)]
    print(sizes, loaded, narrow, outputs, optimizers, issubclass(InputError, ValueError))
