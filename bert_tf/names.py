"""Names and numbers that both the flags and the model need, without importing Keras."""

# The keys of `bert_tf.optimization.OPTIMIZERS`.
OPTIMIZER_NAMES = ("adamw", "lamb")

# A regular expression for the prefixes of Google's names for the variables that ELECTRA's
# pre-training adds to its discriminator.
REPLACED_TOKENS_NAMES = r"(generator|generator_predictions|discriminator_predictions)/"

# The keys of `bert_tf.blockwise_attention.ATTENTION_FUNCTIONS`.
ATTENTION_NAMES = ("auto", "full", "blockwise")

# The number of queries in a block of blockwise attention. Compiled on a CPU (BERT-base's heads,
# 2,048 tokens in rows of 512, 1,024 and 2,048), 64 took 1.08 to 1.14 times as long as whole arrays,
# 128 1.00 to 1.16 times, and 256 0.89 to 1.10 times, but 256 needs twice the memory of 128.
BLOCK_QUERIES = 128

# The row length in tokens from which "auto" computes blockwise. With BERT-base's widths, two layers
# and 4,096 tokens on a CPU, blocks save 8 % of a step's memory at 512, 17 % at 1,024, 29 % at 2,048
# and 48 % at 4,096, where a step takes 1.35 times as long (0.92 to 1.05 times up to 2,048).
BLOCKWISE_TOKENS = 1024


def is_blockwise(name: str, tokens: int) -> bool:
    """Returns True if the attention function `name` computes rows of `tokens` tokens in blocks."""
    if tokens <= BLOCK_QUERIES:
        return False
    return name == "blockwise" or (name == "auto" and tokens >= BLOCKWISE_TOKENS)
