# SPDX-License-Identifier: Apache-2.0
"""Random strings that are hard for collations: spellings of one word, characters without weight, padding, expansions,
scripts, ill-formed bytes. All characters have weights that collation_oracle.py knows.

    spellings of 'strasse' under utf8mb4_unicode_ci:
        b'STRASSE'  b'stra\\xc3\\x9fe'  b'Strasse \\x00'  b'st\\xc3\\xa5\\xcc\\x81sse\\t'
"""
import functools

import collation_oracle

_HAN, _HANGUL = (0x4E00, 0x9FA5), (0xAC00, 0xD7A3)
# Characters that some collation treats as equal to the letter.
_SPELLINGS = {
    "a": "aAaAáÀåäａⒶ𝐀", "b": "bBｂⒷ", "c": "cCçĆ", "d": "dDđð", "e": "eEeEéÉêĘ", "i": "iIíİı", "k": "kK\u212a",
    "l": "lLłĹ", "n": "nNñŃ", "o": "oOøÖóº", "s": "sSſśßŠ", "t": "tTťŦ", "u": "uUüÙ", "z": "zZžŻ", "1": "1１①",
    " ": "  \u00a0\u3000", "к": "кКќ", "и": "иИйЙ", "σ": "σςΣ", "ω": "ωΩώ\u2126", "か": "かカガｶが", "は": "はハパﾊば", "한": "한",
    "漢": "漢", "😀": "😀😁\ufffd"}
_EXPANSIONS = (("ss", "ß"), ("ae", "æ"), ("oe", "œ"), ("fi", "\ufb01"), ("ij", "ĳ"), ("한", "\u1112\u1161\u11ab"),
               ("dz", "ǆ"))
_IGNORABLE = ("\0", "\x01", "\x1f", "\u00ad", "\u0301", "\u200b", "\u200d", "\ufe0f")
_ENDINGS = ("", "", "", " ", "   ", "\t", "\n", "\0", " \0", "\u00a0", "\u3000", " \t", "!", " " * 17, "\x1f", "\u0301",
            "\u0301 ")
_STEMS = ("strasse", "co op", "oeuvre", "aether", "fiance", "иван", "σωκος", "かは", "한漢", "a", "k1", "😀b",
          "naive facade", "zzzz", "island i", "dozen dzungl", "")
_ILL_FORMED = (b"\xff", b"\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xc3",
               b"\xf0\x9f\x98", b"\xf0\x80")
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 20, 21, 23, 24, 25, 31, 32, 33, 40)


@functools.cache
def _characters():
    known = [chr(code) for code in collation_oracle.known_code_points()]
    return known + [chr(code) for code in (*range(0x4E00, 0x4E08), 0x6F22, 0x9FA5, 0xAC00, 0xAC01, 0xD55C, 0xD7A3)]


@functools.cache
def _known():
    return frozenset(map(ord, _characters()))


def is_known(collation, value):
    """Whether all weights of a string are known."""
    kind = collation_oracle.collation_of(collation).weights
    return not kind.startswith("uca") or all(
        code in _known() or code >= collation_oracle.ILL_FORMED
        or any(first <= code <= last for first, last in (_HAN, _HANGUL))
        for code in collation_oracle.characters(value))


def _spelt(rng, stem, much):
    """The stem with some of its characters spelt otherwise; `much`: how often."""
    for plain, other in _EXPANSIONS:
        if plain in stem and rng.random() < much:
            stem = stem.replace(plain, other, 1)
    text = ""
    for character in stem:
        text += rng.choice(_SPELLINGS.get(character, (character,))) if rng.random() < much else character
        text += rng.choice(_IGNORABLE) if rng.random() < 0.2 * much else ""
    return text + rng.choice(_ENDINGS)


def _cased(rng, num_bytes, alphabet="abcxyzABCXYZ"):
    return "".join(rng.choices(alphabet, k=num_bytes))


def _with_one_other(rng, text):
    """The text with one character that is not ASCII, somewhere."""
    place = rng.randint(0, len(text))
    return text[:place] + rng.choice("éßſ漢😀\u0301\u212aЯ") + text[place:]


def _texts(rng, count):
    style = rng.choice(("spellings", "spellings", "spellings", "cases", "cases", "one other", "characters", "single",
                        "prefixes", "long"))
    if style == "spellings":
        stems, much = rng.choices(_STEMS, k=rng.choice((1, 2, 5, 20))), rng.choice((0.1, 0.5, 1))
        return [_spelt(rng, rng.choice(stems), much) for _ in range(count)]
    if style == "cases":
        alphabets = ("aA", "abAB", "azAZ@[`{09 ~", "abcxyzABCXYZ")
        words = [_cased(rng, rng.choice(_LENGTHS), rng.choice(alphabets)) for _ in range(count // 3 + 1)]
        return [rng.choice((str, str.upper, str.lower, str.swapcase))(rng.choice(words)) + rng.choice(_ENDINGS[:9])
                for _ in range(count)]
    if style == "one other":
        word = _cased(rng, rng.choice(_LENGTHS))
        return [rng.choice((str, _with_one_other.__get__(rng)))(rng.choice((word, word.lower(), word[:-1])))
                for _ in range(count)]
    if style == "characters":
        return ["".join(rng.choices(_characters(), k=rng.choice((1, 2, 3, 8, 20)))) for _ in range(count)]
    if style == "single":
        prefix = rng.choice(("", "", "a", "0123456789abcdef"))
        return [prefix + rng.choice(_characters()) for _ in range(count)]
    if style == "prefixes":
        whole = "".join(rng.choice((rng.choice("abAB "), rng.choice(_characters()))) for _ in range(60))
        return [whole[:rng.randint(0, 60)] + rng.choice(_ENDINGS) for _ in range(count)]
    stem = rng.choice(_STEMS) or "x"
    return [_spelt(rng, stem * (rng.choice((64, 256, 300)) // len(stem)), 0.02) for _ in range(min(count, 40))]


def random_strings(rng, collation, utf8, count):
    """`count` strings, or fewer; `utf8`: well-formed ones alone."""
    values = [text.encode() for text in _texts(rng, count)]
    if not utf8 and rng.random() < 0.4:
        for number, value in enumerate(values):
            place = rng.randint(0, len(value))
            if rng.random() < 0.3:
                values[number] = value[:place] + rng.choice(_ILL_FORMED) + value[place:]
    return restricted(rng, collation, values)


def restricted(rng, collation, values):
    """The values, but those of unknown weights replaced."""
    known = [value if is_known(collation, value) else None for value in values]
    return [_cased(rng, 3).encode() if value is None else value for value in known]


# ---- what values show ------------------------------------------------------------------------------------------------

SPELLINGS = ("trailing spaces", "spelt otherwise", "not ASCII", "ill-formed")


def spellings_of(column_type, values):
    """Which of SPELLINGS the values of a column show."""
    if not column_type.is_collated:
        return
    trimmed = {value.rstrip(b" ") for value in values}
    if len(trimmed) < len(values):
        yield "trailing spaces"
    if len({collation_oracle.equality_key(column_type.collation, value) for value in trimmed}) < len(trimmed):
        yield "spelt otherwise"
    if not all(map(bytes.isascii, values)):
        yield "not ASCII"
        if any(code >= collation_oracle.ILL_FORMED for value in values for code in collation_oracle.characters(value)):
            yield "ill-formed"
