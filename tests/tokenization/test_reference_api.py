"""Code written for the tokenization.py of either reference repository keeps working."""

import json
import pickle

import pytest

import tokenization
from tests.support.golden import SAMPLE, WORDPIECE_FILES, read_records
from tokenization import InputError, load_tokenizer, save_tokenizer

VOCABULARY = SAMPLE / "vocab.txt"
SPM_MODEL = SAMPLE / "spm_small.model"

# What the modules define, those that start with "_" and are used by other programs included.
BERT_NAMES = (
    "BasicTokenizer", "FullTokenizer", "WordpieceTokenizer", "convert_by_vocab",
    "convert_ids_to_tokens", "convert_to_unicode", "convert_tokens_to_ids", "load_vocab",
    "printable_text", "validate_case_matches_checkpoint", "whitespace_tokenize",
    "_is_control", "_is_punctuation", "_is_whitespace",
)  # fmt: skip
ALBERT_NAMES = ("SPIECE_UNDERLINE", "encode_ids", "encode_pieces", "preprocess_text")


def test_every_name_is_there():
    assert [n for n in BERT_NAMES + ALBERT_NAMES if not hasattr(tokenization, n)] == []


@pytest.mark.parametrize("name", WORDPIECE_FILES)
def test_both_halves_give_what_google_recorded(name):
    vocab = tokenization.load_vocab(VOCABULARY)
    wordpiece = tokenization.WordpieceTokenizer(vocab)
    for record in read_records(SAMPLE / f"{name}.jsonl"):
        words = tokenization.BasicTokenizer(do_lower_case=record["lower"]).tokenize(record["text"])
        assert words == record.get("basic", words)
        assert wordpiece.tokenize(" ".join(words)) == record["tokens"]
        ids = tokenization.convert_tokens_to_ids(vocab, record["tokens"])
        assert ids == record.get("ids", ids)


def test_bytes_are_text():
    basic = tokenization.BasicTokenizer()
    assert basic.tokenize("한국 É!".encode() + b"\xff") == basic.tokenize("한국 É!")
    for arguments in ((VOCABULARY,), (None, True, SPM_MODEL)):
        tokenizer = tokenization.FullTokenizer(*arguments)
        text = "The rain, 한국 É!"
        assert tokenizer.tokenize(text.encode() + b"\xff") == tokenizer.tokenize(text)
        assert tokenizer.encode(text.encode()) == tokenizer.encode(text)
    assert tokenization.convert_to_unicode(b"a\xff") == tokenization.printable_text("a") == "a"
    with pytest.raises(ValueError, match="str or bytes. Received: int"):
        tokenization.convert_to_unicode(1)


def test_step_of_a_subclass_is_used():
    class KeepsHanja(tokenization.BasicTokenizer):
        def _is_chinese_char(self, cp):
            return chr(cp) == "字"

    assert KeepsAccents().tokenize("É 한국") == ["é", "한국"]
    assert KeepsHanja().tokenize("漢字 漢文") == ["漢", "字", "漢文"]


def test_wordpiece_arguments_and_attributes():
    wordpiece = tokenization.WordpieceTokenizer({"un", "##want", "##"}, "?", 6)
    assert wordpiece.tokenize("unwant unwants un##") == ["un", "##want", "?", "?"]
    wordpiece.vocab = {"unwants": 0}
    wordpiece.max_input_chars_per_word = 7
    assert wordpiece.tokenize("unwants") == ["unwants"]


def test_vocabulary_with_odd_lines_is_read_as_bert_reads_it():
    # Blank are 9 and 20, repeated 8 and 19, padded 10 to 13 and 18.
    message = "read as google-research/bert.*9 line.s. are blank, .*: line 8, 9, 10, 11, 12, ...$"
    with pytest.warns(UserWarning, match=message):
        vocab = tokenization.load_vocab(SAMPLE / "vocab_quirks.txt")
    expected = json.loads((SAMPLE / "vocab_quirks_expected.json").read_text(encoding="utf-8"))
    assert list(vocab.items()) == [tuple(pair) for pair in expected["google_bert"]]


def test_attributes_of_the_full_tokenizer():
    tokenizer = tokenization.FullTokenizer(VOCABULARY, do_lower_case=False)
    assert tokenizer.inv_vocab == {index: token for token, index in tokenizer.vocab.items()}
    assert tokenizer.sp_model is None
    words = tokenizer.basic_tokenizer.tokenize("The Rain!")
    assert words == ["The", "Rain", "!"]
    pieces = tokenizer.wordpiece_tokenizer.tokenize(" ".join(words))
    assert pieces == tokenizer.tokenize("The Rain!")
    ids = tokenization.convert_tokens_to_ids(tokenizer.vocab, pieces)
    assert tokenization.convert_ids_to_tokens(tokenizer.inv_vocab, ids) == pieces


class KeepsAccents(tokenization.BasicTokenizer):
    def _run_strip_accents(self, text):
        return text


class OwnHalves(tokenization.FullTokenizer):
    """As many write it: the constructor sets everything itself, and has another argument."""

    def __init__(self, vocab_file, do_lower_case=True, analyser=None):
        self.vocab = tokenization.load_vocab(vocab_file)
        self.inv_vocab = {index: token for token, index in self.vocab.items()}
        self.basic_tokenizer = KeepsAccents(do_lower_case)
        self.wordpiece_tokenizer = tokenization.WordpieceTokenizer(vocab=self.vocab)


class OneMoreArgument(tokenization.FullTokenizer):
    def __init__(self, vocab_file, do_lower_case=True, analyser=None, *, names=()):
        super().__init__(vocab_file, do_lower_case)


def test_halves_can_be_replaced():
    text = "The Élan rain"
    usual = tokenization.FullTokenizer(VOCABULARY)
    replaced = tokenization.FullTokenizer(VOCABULARY)
    replaced.basic_tokenizer = KeepsAccents()
    own = OwnHalves(VOCABULARY, True, "an analyser")
    assert own.tokenize(text) == replaced.tokenize(text) != usual.tokenize(text)
    assert replaced.encode(text) == own.convert_tokens_to_ids(own.tokenize(text))
    assert own.convert_ids_to_tokens(own.encode(text)) == own.tokenize(text)
    changed = OneMoreArgument(VOCABULARY, True, "an analyser", names=("a",))
    assert changed.tokenize(text) == usual.tokenize(text)
    changed.wordpiece_tokenizer.max_input_chars_per_word = 3
    assert changed.tokenize(text) == [*usual.tokenize("The"), "[UNK]", "[UNK]"]


def test_halves_that_are_not_accessed_leave_the_fast_way(monkeypatch, tmp_path):
    """Their own code takes four times as long."""
    tokenizer = tokenization.FullTokenizer(VOCABULARY)
    for half in (tokenization.BasicTokenizer, tokenization.WordpieceTokenizer):
        monkeypatch.setattr(half, "tokenize", lambda *_: pytest.fail("the half was called"))
    tokens = tokenizer.tokenize("The Élan rain")
    save_tokenizer(tokenizer, tmp_path)
    for copy in (pickle.loads(pickle.dumps(tokenizer)), load_tokenizer(tmp_path)):
        assert type(copy) is tokenization.FullTokenizer
        assert copy.tokenize("The Élan rain") == tokens


def test_subclasses_are_of_wordpieces():
    with pytest.raises(InputError, match="subclass .* a vocab_file: .* Received: .*spm_small"):
        type("Other", (tokenization.FullTokenizer,), {})(None, True, SPM_MODEL)


@pytest.mark.parametrize("arguments", ((VOCABULARY,), (None, True, SPM_MODEL)))
def test_an_argument_that_does_not_exist(arguments):
    """Only a subclass may have more."""
    with pytest.raises(TypeError, match="do_lowercase"):
        tokenization.FullTokenizer(*arguments, do_lowercase=False)


def test_full_tokenizer_with_a_sentencepiece_model(tmp_path):
    tokenizer = tokenization.FullTokenizer(None, True, SPM_MODEL)
    same = tokenization.FullTokenizer.from_scratch(
        vocab_file=None, do_lower_case=True, spm_model_file=SPM_MODEL
    )
    for record in read_records(SAMPLE / "albert_spm_small.jsonl"):
        lower = record["lower"]
        text = tokenization.preprocess_text(record["text"], lower=lower)
        if record.get("bytes_token_positions") or len(set(record["text"])) == 1:
            continue  # see test_tokenization_golden
        assert tokenizer.tokenize(text) == same.tokenize(text) == record["tokens"]
        assert tokenization.encode_pieces(tokenizer.sp_model, text) == record["tokens"]
        ids = tokenizer.convert_tokens_to_ids(record["tokens"])
        assert tokenization.encode_ids(tokenizer.sp_model, text) == ids
        assert [tokenizer.inv_vocab[i] for i in ids] == tokenizer.convert_ids_to_tokens(ids)
    save_tokenizer(tokenizer, tmp_path)
    for copy in (load_tokenizer(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.fingerprint() == tokenizer.fingerprint()


@pytest.mark.parametrize("kind", ["uncased", "chinese", "multi_cased"])
def test_letter_case_of_a_published_checkpoint(kind):
    check, model = tokenization.validate_case_matches_checkpoint, f"{kind}_L-12_H-768_A-12"
    lower = kind != "multi_cased"
    check(lower, f"/models/{model}/bert_model.ckpt")
    check(not lower, f"/models/{model}/model.ckpt-100")
    check(not lower, None)
    with pytest.raises(ValueError, match=f"must be {lower} for {model}"):
        check(not lower, f"/models/{model}/bert_model.ckpt")


def write_hub_module(folder, vocabulary, lower):
    """Writes what `hub.Module` of TensorFlow 1 loads, without a model in it."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), tf.Session() as session:
        file, case = tf.constant(str(vocabulary)), tf.constant(lower)
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, file)
        info = {"vocab_file": file, "do_lower_case": case}
        signature = tf.saved_model.build_signature_def(
            {}, {name: tf.saved_model.build_tensor_info(value) for name, value in info.items()}
        )
        builder = tf.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, [], {"tokenization_info": signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
        )  # fmt: skip
        builder.save()


def test_tokenizer_of_a_hub_module(tmp_path):
    write_hub_module(tmp_path / "spm", SPM_MODEL, True)
    tokenizer = tokenization.FullTokenizer.from_hub_module(str(tmp_path / "spm"))
    same = tokenization.FullTokenizer(None, True, SPM_MODEL)
    assert tokenizer.tokenize("한국") == same.tokenize("한국")
    write_hub_module(tmp_path / "wordpiece", VOCABULARY, False)
    tokenizer = tokenization.FullTokenizer.from_hub_module(str(tmp_path / "wordpiece"), False)
    assert not tokenizer.do_lower_case
    assert tokenizer.vocab == tokenization.load_vocab(VOCABULARY)
    for wrong in (str(tmp_path), "https://tfhub.dev/google/albert_base/1"):
        with pytest.raises(InputError, match=f"unpacked .* Received: {wrong}"):
            tokenization.FullTokenizer.from_hub_module(wrong)
