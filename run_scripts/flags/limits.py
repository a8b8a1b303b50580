"""The highest values that flags take, where several flags share one.

What is larger is a slip of the hand, and would fill the memory or take for ever.
"""

# Updates, evaluations, checkpoints: what an int32 holds, more than anybody will ever train.
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

# What the seeds of TensorFlow and of the training step have room for.
MAX_SEED = 2**31 - 1

# A pass over the examples that is repeated more often learns nothing any more.
MOST_EPOCHS = 1_000_000

# A rate of 1 is too high for both optimizers.
HIGHEST_RATE = 1000

# Trainings whose mean and deviation somebody wants to know.
MOST_SEEDS = 1000

# Answers to a question that somebody reads.
MOST_SHOWN = 1000
