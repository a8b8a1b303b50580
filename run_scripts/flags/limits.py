"""The highest values that flags take, where several flags share one.

Anything larger is a typing error, and would fill the memory or take forever.
"""

# Updates, evaluations, checkpoints: what an int32 holds, more than any training has. The upper
# bound of every flag that declares no other.
MOST_STEPS = 2**31 - 1

# The largest batches that BERT was trained with have 65,536 examples.
LARGEST_BATCH = 2**20

# Far beyond any BERT.
LONGEST_SEQUENCE = 65_536

# Pieces of a vocabulary: four times the largest of published models.
LARGEST_VOCABULARY = 2**20

# Threads and processes: more than any machine has cores.
MOST_PROCESSES = 4096

# GPUs of a machine.
MOST_DEVICES = 1024

# The seeds of TensorFlow and of the training step are int32.
MAX_SEED = 2**31 - 1

# More passes over the examples teach a model nothing.
MOST_EPOCHS = 1_000_000

# A rate of 1 is too high for both optimizers.
HIGHEST_RATE = 1000

# Seeds to average over: more add nothing.
MOST_SEEDS = 1000

# Answers to a question: nobody reads more.
MOST_SHOWN = 1000

# A year: longer trainings are continued with a larger number.
MOST_HOURS = 8766
