"""Finds the data sheet of a card by the name of its device."""

from bert_tf.costs.cards import CARDS, Card

# Words of names whose chips have another peak, or, with MIG, a part of one.
OTHER_CHIPS = {"LAPTOP", "TI", "MAX", "D", "MIG"}


def find_card(device_name: str) -> Card | None:
    """The `Card` of a device's name, such as "NVIDIA A100-SXM4-80GB"; None if it is not listed."""
    words = device_name.upper().replace("-", " ").split()
    # The most words first, so that "H100 PCIe" comes before "H100 SXM".
    for card in sorted(CARDS.values(), key=lambda card: -len(card.name.split())):
        wanted = card.name.upper().split()
        if all(word in words for word in wanted) and not OTHER_CHIPS & set(words):
            return card
    return CARDS["h100"] if "H100" in words and "HBM3" in words else None
