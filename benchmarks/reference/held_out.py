"""Measures a pre-trained model on held-out records, with bits per character of masked text.

    python -m benchmarks.reference.held_out --model_dir=output/model \
      --input_file=output/heldout.tfrecord --output_dir=output/heldout

This runs run_pretraining --do_eval on all records and adds one number: the loss of the masked
tokens, in bits, divided by the number of characters of these tokens (an [UNK] has one). Spaces are
not counted, and the number of masked tokens, which the model sees, costs nothing, so only models
with the same vocabulary are comparable; benchmarks/vocabularies/bits.py compares vocabularies.
"""

import math

from benchmarks.common import flag, launch, positive, typed
from create_pretraining_data.records.metadata import tokenizer_beside
from run_scripts.flags.paths import expand_globs
from tokenization import load_tokenizer
from tokenization.comparison import open_vocabulary

# Larger than any number of batches, so that all are measured.
ALL_BATCHES = 1_000_000

# Flags of run_pretraining.
FLAGS = {
    "model_dir": flag(str, "the model's folder"),
    "input_file": flag(
        str, "records of create_pretraining_data.py --masking=static: paths or globs"
    ),
    "output_dir": flag(str, "the folder for eval_results.txt"),
    "eval_batch_size": flag(64, "examples in a step", type=positive(int)),
    "device": flag("auto", choices=("auto", "cpu")),
    "ignore_compute_capability": False,
}


def main(arguments):
    """Evaluates the model, then adds the bits per character to its results."""
    from run_scripts.flags.parser import parse
    from run_scripts.flags.pretrain import PretrainFlags
    from run_scripts.pretrain import pretrain

    files = expand_globs(arguments.input_file, "input_file")
    folder = next(filter(None, map(tokenizer_beside, files)))
    tokenizer = load_tokenizer(folder)
    given = typed({name: getattr(arguments, name) for name in FLAGS})
    given += [f"--max_eval_steps={ALL_BATCHES}", "--do_eval", "--nodo_train"]
    pretrain(parse(PretrainFlags, ["held_out", *given]))

    from bert_tf.training.evaluation import read_results, write_results

    results = read_results(arguments.output_dir)
    lengths = characters_of(tokenizer, open_vocabulary(folder).plain)
    pieces, characters = count_masked(files, lengths)
    loss = results["masked_lm_loss"]
    results["bits_per_character"] = bits_per_character(loss, pieces, characters)
    path = write_results(arguments.output_dir, results)
    print(f"bits per character of masked text: {results['bits_per_character']:.4f} ({path})")


def bits_per_character(loss, pieces, characters):
    """Returns the bits per character of masked text.

    Args:
        loss: the mean loss of the masked tokens, in nats.
        pieces: the number of masked tokens.
        characters: the total number of their characters.
    """
    return loss * pieces / characters / math.log(2)


def count_masked(files, lengths):
    """Counts the masked tokens of record files, and the characters of these tokens.

    Args:
        files: paths.
        lengths: the result of `characters_of`.
    """
    import tensorflow as tf

    from create_pretraining_data.records.reader import open_records, parsing_spec, read_format

    record_format = read_format(files[0])
    assert record_format.masking is None, "masks must be in the records: --masking=static"
    spec = parsing_spec(record_format)
    pieces = characters = 0
    for batch in open_records(files).batch(1024):
        parsed = tf.io.parse_example(batch, spec)
        ids = parsed["masked_lm_ids"].numpy()  # [B, P]
        weights = parsed["masked_lm_weights"].numpy()  # [B, P]
        masked = ids[weights > 0]
        pieces += len(masked)
        characters += sum(lengths[piece] for piece in masked.tolist())
    return pieces, characters


def characters_of(tokenizer, plain):
    """Returns the number of characters of each token by its id; 1 for special tokens.

    Args:
        tokenizer: a tokenizer.
        plain: `OpenedVocabulary.plain` of its vocabulary.
    """
    special = {
        tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id,
    }  # fmt: skip
    return {
        number: 1 if number in special else len(plain(piece))
        for piece, number in tokenizer.vocab.items()
    }


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
