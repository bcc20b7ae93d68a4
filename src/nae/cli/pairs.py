"""Words on the command line that name a feature and a value: ``income:+``, ``town:Ulm:0.1``."""

from collections.abc import Sequence

from nae.errors import ConfigError, did_you_mean

__all__ = ["number_in", "pairs", "split_feature"]


def pairs(words: Sequence[str] | None, option: str, *, example: str) -> list[tuple[str, str]]:
    """Return the name and the value of words such as ``income:+``; the value follows the last colon."""
    found = []
    for word in words or ():
        name, colon, value = word.rpartition(":")
        if not (name and colon and value):
            raise ConfigError(f"{option} must be a feature, a colon and a value, such as {example}; got {word!r}.")
        found.append((name, value))
    twice = [name for name, _ in found if [one for one, _ in found].count(name) > 1]
    if twice:
        raise ConfigError(f"{option} takes every feature once; got {twice[0]!r} twice.")
    return found


def split_feature(word: str, names: Sequence[str], option: str, *, example: str) -> tuple[str, str]:
    """Return the feature that a word begins with, and what follows the colon. Names and values may hold colons."""
    found = [name for name in names if word.startswith((f"{name}:", f"{name.strip()}:"))]
    if not found:
        name, colon, _ = word.partition(":")
        hint = did_you_mean(name, names) if colon else ""
        raise ConfigError(f"{option} must begin with a feature and a colon, such as {example}; got {word!r}.{hint}")
    name = max(found, key=len)
    return name, word[len(name if word.startswith(f"{name}:") else name.strip()) + 1 :]


def number_in(text: str, option: str, *, example: str) -> float:
    """Return the number that a word ends in."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} must end in a number, such as {example}; got {text!r}.") from None
