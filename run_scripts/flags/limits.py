"""Defines upper bounds that several flags share.

A larger value is a typing error, and would fill the memory or take forever.
"""

# Updates, evaluations or checkpoints: the largest int32, more than any training needs. The upper
# bound of every flag that declares none.
MOST_STEPS = 2**31 - 1

# The largest batches that BERT was trained with have 65,536 examples.
LARGEST_BATCH = 2**20

# In tokens, far more than any BERT takes.
LONGEST_SEQUENCE = 65_536

# In tokens, four times the largest vocabulary of published models.
LARGEST_VOCABULARY = 2**20

# Threads or processes: more than any machine has cores.
MOST_PROCESSES = 4096

# GPUs per machine.
MOST_DEVICES = 1024

# The seeds of TensorFlow and of the training step are int32.
MAX_SEED = 2**31 - 1

# More passes over the examples teach a model nothing.
MOST_EPOCHS = 1_000_000

# Even a learning rate of 1 is too high for both optimizers.
HIGHEST_RATE = 1000

# Averaging over more seeds adds nothing.
MOST_SEEDS = 1000

# Nobody reads more answers to a question.
MOST_SHOWN = 1000

# A year; no training takes longer.
MOST_HOURS = 8766
