"""Spells characters that have no token as UTF-8 bytes, named as in SentencePiece and Llama.

😀 is <0xF0> <0x9F> <0x98> <0x80>. Inside a word, the first byte of a character has the prefix of
continuation tokens (##<0xF0>), so that the words can be restored; the bytes after it have none,
because they never begin a character.
"""

from collections.abc import Container

BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_BYTE_OF = {piece: byte for byte, piece in enumerate(BYTE_PIECES)}

# The first bytes of characters of two, three and four bytes.
LEADING = range(0xC2, 0xF5)
_FOLLOWING = range(0x80, 0xC0)


def byte_vocabulary(prefix: str) -> list[str]:
    """Returns the tokens that spell every character: 256, and 51 with the prefix if not empty."""
    marked = [prefix + BYTE_PIECES[byte] for byte in LEADING] if prefix else []
    return [*BYTE_PIECES, *marked]


def byte_of(token: str, prefix: str = "##") -> int | None:
    """Returns the byte of a byte token, with or without the prefix; None for other tokens."""
    return _BYTE_OF.get(token.removeprefix(prefix) if prefix else token)


def follows_in_character(token: str) -> bool:
    """Returns True if a token is a byte that never begins a character, and so never a word."""
    return _BYTE_OF.get(token) in _FOLLOWING


def spell_by_bytes(character: str, prefix: str = "") -> list[str]:
    """Returns the byte tokens of a character, with a prefix for a character inside a word."""
    first, *following = character.encode("utf-8")
    return [prefix + BYTE_PIECES[first], *(BYTE_PIECES[byte] for byte in following)]


def join_bytes(tokens: list[str], prefix: str, begin: Container[str] = ()) -> list[str]:
    """Replaces the byte tokens of each character by the character, prefixed as its first byte.

    An ASCII character, whose byte is never prefixed, gets the prefix if it is in `begin`: what
    begins words by a token needs its byte only inside them. Bytes that spell no character, which a
    model may predict, become U+FFFD.
    """
    joined, place = [], 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        byte = byte_of(token, prefix)
        if byte is None:
            joined.append(token)
            continue
        content = bytes([byte])
        # The first byte tells how many follow: one after 0xC2, three after 0xF0.
        most = (byte >= 0xC2) + (byte >= 0xE0) + (byte >= 0xF0)
        while len(content) <= most and place < len(tokens) and follows_in_character(tokens[place]):
            content += bytes([_BYTE_OF[tokens[place]]])
            place += 1
        try:
            character = content.decode("utf-8")
        except UnicodeDecodeError:
            character = "\ufffd"
        continues = token not in _BYTE_OF or (byte < 0x80 and character in begin)
        joined.append((prefix if continues else "") + character)
    return joined
