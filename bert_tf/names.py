"""Names and numbers that both the flags and the model need: nothing here imports Keras."""

# The keys of `bert_tf.optimization.OPTIMIZERS`.
OPTIMIZER_NAMES = ("adamw", "lamb")

# How Google's names of what ELECTRA's pre-training adds to its discriminator begin, as a regular
# expression.
REPLACED_TOKENS_NAMES = r"(generator|generator_predictions|discriminator_predictions)/"

# The keys of `bert_tf.blockwise_attention.ATTENTION_FUNCTIONS`.
ATTENTION_NAMES = ("auto", "full", "blockwise")

# Queries of a block of blockwise attention. Compiled on a CPU (BERT-base's heads, 2,048 tokens in
# rows of 512, 1,024 and 2,048) blocks of 64 took 1.08 to 1.14 times as long as whole arrays, of 128
# 1.00 to 1.16 times, of 256 0.89 to 1.10 times, with twice the memory of 128.
BLOCK_QUERIES = 128

# Tokens of a row from which "auto" computes blockwise: of a step's memory (BERT-base's widths, two
# layers, 4,096 tokens, a CPU) that saves 8 % at 512, 17 % at 1,024, 29 % at 2,048 and 48 % at
# 4,096, where a step takes 1.35 times as long (up to 2,048: 0.92 to 1.05 times).
BLOCKWISE_TOKENS = 1024


def is_blockwise(name: str, tokens: int) -> bool:
    """Whether the attention function of that name computes rows of so many tokens by blocks."""
    if tokens <= BLOCK_QUERIES:
        return False
    return name == "blockwise" or (name == "auto" and tokens >= BLOCKWISE_TOKENS)
