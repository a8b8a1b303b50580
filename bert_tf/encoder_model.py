"""What all models around an encoder share: its configuration, saving with it."""

import keras


class EncoderModel(keras.Model):
    """A BERT or ALBERT encoder; what inherits from it adds heads and an `objective`.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        name: another than the encoder's: the names of all variables begin with one of them.
    """

    def __init__(self, encoder, name, **kwargs):
        super().__init__(name=name, dtype=kwargs.pop("dtype", encoder.dtype_policy), **kwargs)
        if name == encoder.name:
            raise ValueError(f"the model and its encoder need two names. Received: {name!r} twice")
        self.encoder = encoder
        self.config = encoder.config

    def get_config(self):
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(encoder, **{key: value for key, value in config.items() if key != "encoder"})
