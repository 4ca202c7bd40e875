"""Text to token ids and back, and back again while the tokens are still coming.

``Tokenizer`` reads a checkpoint's ``tokenizer.json`` without transformers. ``ByteTokenizer`` serves the random models:
its tokens are the 256 bytes. ``StreamDecoder`` turns one request's tokens into text as they come: a character may need
several tokens, and a stop string may end in the middle of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from onelaunch.errors import ModelNotFoundError, RequestError
from onelaunch.models.streaming import ByteStream, StreamDecoder, WindowStream, gpt2_bytes

if TYPE_CHECKING:
    import tokenizers

__all__ = ["ByteTokenizer", "StreamDecoder", "Tokenizer", "load_tokenizer"]

Message = Mapping[str, Any]  # {"role": "user", "content": "..."}
_SLOW_FILES = ("tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")


class Tokenizer:
    """A checkpoint's tokenizer.

    backend: a ``tokenizers.Tokenizer``. settings: the checkpoint's ``tokenizer_config.json``. template: its chat
    template, None where it has none.
    """

    def __init__(self, backend: tokenizers.Tokenizer, settings: Mapping[str, Any], template: str | None) -> None:
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self._template = template
        self._special_tokens = {
            name: token
            for name, token in ((k, _content(v)) for k, v in settings.items() if k.endswith("_token"))
            if token
        }
        self._skipped = {i for i, token in backend.get_added_tokens_decoder().items() if token.special}
        bos = self._special_tokens.get("bos_token")
        self._bos_id = None if bos is None else backend.token_to_id(bos)

    @property
    def vocab_size(self) -> int:
        """Tokens, added ones included. A model's own vocab_size may be larger: it is often padded."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, with the tokens that the checkpoint puts around a text (often one in front).

        Text that begins with that token already, as ``chat`` may return it, gets no second one. Raises RequestError
        for text that is not valid Unicode.
        """
        _check_unicode(text)
        ids: list[int] = self._backend.encode(text, add_special_tokens=True).ids
        if self._bos_id is not None and ids[:2] == [self._bos_id, self._bos_id]:
            del ids[0]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, without special tokens. Bytes that are no character become U+FFFD."""
        return self._backend.decode(list(ids), skip_special_tokens=True)

    def chat(self, messages: Sequence[Message]) -> str:
        """A conversation as the model was trained to read it, up to where its answer begins.

        messages: ``{"role": "user", "content": "..."}`` and so on. Raises RequestError where the checkpoint has no
        chat template, or where its template refuses these messages.
        """
        if self._template is None:
            raise RequestError("this checkpoint brings no chat template, so chat() cannot be used: give plain text.")
        import jinja2

        try:
            return _compile(self._template).render(
                messages=[dict(message) for message in messages], add_generation_prompt=True, **self._special_tokens
            )
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise RequestError(
                f"the checkpoint's chat template cannot render these messages ({error}). "
                'Each is {"role": "system" | "user" | "assistant", "content": "..."}.'
            ) from error

    def stream(self) -> ByteStream | WindowStream:
        """Decode one sequence token by token; ``StreamDecoder`` is built on it."""
        if self._is_byte_level:
            return ByteStream(self._bytes)
        return WindowStream(self.decode, self._is_skipped, self._is_byte)

    @cached_property
    def _decoder_types(self) -> list[str]:
        decoder = self._backend.decoder
        if decoder is None:
            return []
        state = json.loads(decoder.__getstate__())
        return [part["type"] for part in state.get("decoders", [state])]

    @property
    def _is_byte_level(self) -> bool:
        return self._decoder_types == ["ByteLevel"]

    def _token(self, token_id: int) -> str | None:
        """How the vocabulary writes this token; None for what is never part of a text."""
        return None if token_id in self._skipped else self._backend.id_to_token(token_id)

    def _is_skipped(self, token_id: int) -> bool:
        return self._token(token_id) is None

    def _is_byte(self, token_id: int) -> bool:
        """Whether this token stands for one byte, written ``<0xE2>``, as in vocabularies with byte fallback."""
        token = self._token(token_id) if "ByteFallback" in self._decoder_types else None
        return token is not None and len(token) == 6 and token.startswith("<0x") and token.endswith(">")

    def _bytes(self, token_id: int) -> bytes:
        token = self._token(token_id)
        return b"" if token is None else gpt2_bytes(token)


class ByteTokenizer:
    """One token for each byte of UTF-8, and one for the end of the text."""

    eos_token_id: ClassVar[int] = 256
    vocab_size: ClassVar[int] = 257

    def encode(self, text: str) -> list[int]:
        """The bytes of ``text``. Raises RequestError for text that is not valid Unicode."""
        _check_unicode(text)
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; what is no byte is skipped, bytes that are no character become U+FFFD."""
        return b"".join(map(self._bytes, ids)).decode(errors="replace")

    def chat(self, messages: Sequence[Message]) -> str:
        """A conversation as plain lines: a random model was trained to read nothing."""
        return "".join(f"{message['role']}: {message['content']}\n" for message in messages) + "assistant: "

    def stream(self) -> ByteStream:
        """Decode one sequence token by token; ``StreamDecoder`` is built on it."""
        return ByteStream(self._bytes)

    @staticmethod
    def _bytes(token_id: int) -> bytes:
        return bytes([token_id]) if 0 <= token_id < 256 else b""


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of a checkpoint folder, None where it brings none.

    Where there are only files of an older format, transformers converts them. Raises ModelNotFoundError for a
    tokenizer that cannot be read.
    """
    from tokenizers import Tokenizer as Backend

    path = folder / "tokenizer.json"
    settings = _read_json(folder / "tokenizer_config.json")
    template = _find_template(folder, settings)
    if path.is_file():
        try:
            return Tokenizer(Backend.from_file(str(path)), settings, template)
        except Exception as error:  # the library raises Exception itself
            raise ModelNotFoundError(f"cannot read {path} ({error}): fetch the model again.") from error
    if not any((folder / name).is_file() for name in _SLOW_FILES):
        return None
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(folder)
        return Tokenizer(loaded.backend_tokenizer, settings, template)
    except Exception as error:  # depends on which of several optional packages is missing
        raise ModelNotFoundError(
            f"{folder} has no tokenizer.json, and transformers cannot make one of the older files there "
            f"({type(error).__name__}: {str(error).strip()[:300]}). Save it once with a fast tokenizer, "
            "or give token ids instead of text after removing those files."
        ) from error


def _find_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    return template


def _compile(template: str) -> Any:
    """Compile as transformers does: in a sandbox, because a template is code that came with the weights."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def strftime_now(pattern: str) -> str:
        from datetime import datetime

        return datetime.now().strftime(pattern)

    def tojson(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)  # Jinja's own would escape HTML

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment.from_string(template)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelNotFoundError(f"cannot read {path} ({error}): fetch the model again.") from error
    return content if isinstance(content, dict) else {}


def _content(token: Any) -> str | None:
    """A special token is written as a string, or as an object that holds it."""
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text is not valid Unicode: half a character (a lone surrogate) at position {error.start}. "
            "Read it again with the right encoding."
        ) from error
