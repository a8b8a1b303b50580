"""Measures how fast a device multiplies matrices."""

import time

SEED = 1

# The side length of the matrices.
PRODUCT_SIZES = {"CPU": 2048, "GPU": 8192}

# How long products are repeated, as a single product takes only a millisecond on a GPU.
PRODUCT_SECONDS, MAX_PRODUCTS = 0.5, 1000


def measure_products(task):
    """Times products of two square matrices; "speed" is in floating-point operations per second.

    Args:
        task: a dict with "device" and "precision".
    """
    import tensorflow as tf

    size = PRODUCT_SIZES[task["device"][:3]]

    @tf.function
    def run(matrix, count):
        product = matrix
        for _ in tf.range(count):
            product = tf.matmul(matrix, product)
        return tf.reduce_sum(tf.cast(product[0], tf.float32))

    def seconds(count):
        start = time.perf_counter()
        run(matrix, tf.constant(count)).numpy()
        return (time.perf_counter() - start) / count

    with tf.device(task["device"]):
        # Scaled so that repeated products neither grow nor shrink.
        matrix = tf.random.stateless_normal([size, size], [SEED, 0], stddev=size**-0.5)
        matrix = tf.cast(matrix, task["precision"])
        seconds(1)  # traces the function and chooses kernels
        count = min(MAX_PRODUCTS, 1 + int(PRODUCT_SECONDS / seconds(1)))
        return {"result": "ok", "speed": 2 * size**3 / seconds(count)}
