"""From what a caller gives as a prompt to token ids, or to the reason why it cannot be run."""

from __future__ import annotations

from collections.abc import Sequence

from onelaunch.errors import RequestError
from onelaunch.models.tokenizer import ByteTokenizer, Tokenizer

Prompt = str | Sequence[int]


def encode(prompt: object, tokenizer: Tokenizer | ByteTokenizer | None, model: str, vocab_size: int) -> list[int]:
    """The token ids of one prompt, at least one. Raises RequestError, which names ``model``, where there are none."""
    if isinstance(prompt, str):
        if not prompt:
            raise RequestError("the prompt is empty: give at least one character, or one token id.")
        if tokenizer is None:
            raise RequestError(
                f"{model} brings no tokenizer (tokenizer.json), so text cannot be read. Give token ids instead."
            )
        return tokenizer.encode(prompt)
    if not isinstance(prompt, Sequence) or not all(isinstance(i, int) for i in prompt):
        raise RequestError(f"a prompt is a text or a list of token ids; found {type(prompt).__name__}.")
    ids = list(prompt)
    if not ids:
        raise RequestError("the prompt is empty: give at least one token id.")
    strange = [i for i in ids if not 0 <= i < vocab_size]
    if strange:
        raise RequestError(f"token ids of {model} lie in 0 to {vocab_size - 1}; found {strange[0]}.")
    return ids


def is_one_prompt(prompts: object) -> bool:
    """Whether ``prompts`` is one prompt, and no list of them."""
    if isinstance(prompts, str):
        return True
    return isinstance(prompts, Sequence) and len(prompts) > 0 and all(isinstance(i, int) for i in prompts)
