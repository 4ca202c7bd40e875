"""Text to ids and back equals transformers; a stream of tokens equals decoding them all at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer

from onelaunch.errors import ModelNotFoundError, RequestError
from onelaunch.models.streaming import _gpt2_table
from onelaunch.models.tokenizer import ByteTokenizer, StreamDecoder, Tokenizer, load_tokenizer

LLAMA3_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m['role'] == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<{{ m['role'] }}>{{ m['content'] | trim }}</s>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " <b>Größe</b>? "}]


def byte_level() -> Backend:
    """As Llama 3, Qwen and SmolLM2: tokens are bytes, in GPT-2's letters."""
    merges = [("Ġ", "h"), ("e", "l"), ("Ã", "¤"), ("ð", "Ł"), ("ðŁ", "Ļ"), ("Ļ", "Ĥ"), ("â", "Ĥ")]
    tokens = [*_gpt2_table(), *("".join(pair) for pair in merges)]
    backend = Backend(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<s>", "</s>")])
    backend.add_tokens([AddedToken("<think>", normalized=False), AddedToken("added → as is", normalized=False)])
    return backend


def sentencepiece(*, bos: bool = True) -> Backend:
    """As Llama 2: words with ▁ in front, single bytes where a character is not in the vocabulary."""
    words = ["▁", "▁a", "a", "b", "▁b", "▁▁", "ä", "▁hello", "€", " ", "ab"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    merges = [("▁", "a"), ("▁", "b"), ("▁", "▁"), ("a", "b")]
    vocab = {token: i for i, token in enumerate(tokens)}
    backend = Backend(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    if bos:
        backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return backend


def no_decoder() -> Backend:
    backend = Backend(models.WordLevel({"a": 0, "b": 1, ",": 2, "?": 3}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s"), "removed")
    return backend


TOKENIZERS: dict[str, Any] = {
    "byte level": Tokenizer(byte_level(), {}, None),
    "byte fallback": Tokenizer(sentencepiece(), {}, None),
    "no decoder": Tokenizer(no_decoder(), {}, None),
    "bytes": ByteTokenizer(),
}
by_kind = pytest.mark.parametrize("kind", TOKENIZERS)


def save(folder: Path, backend: Backend, **config: Any) -> Path:
    backend.save(str(folder / "tokenizer.json"))
    content = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    return folder


def stream(tokenizer: Any, ids: list[int], stop: Any = ()) -> tuple[list[str], StreamDecoder]:
    decoder = StreamDecoder(tokenizer, stop=stop)
    return [*(decoder.push(i) for i in ids), decoder.flush()], decoder


@by_kind
@given(data=st.data())
def test_a_stream_of_any_tokens_equals_decoding_them_at_once(kind: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[kind]
    # Ids beyond the vocabulary too: a model's is often padded, and may predict what no token stands for.
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=40))
    assert "".join(stream(tokenizer, ids)[0]) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", ["byte level", "byte fallback", "bytes"])
@given(text=st.text(st.one_of(st.sampled_from("ab ä€🙂"), st.characters(codec="utf-8"))))
def test_a_stream_of_a_text_returns_it_and_never_half_a_character(kind: str, text: str) -> None:
    text = text.replace("\ufffd", "")
    ids = TOKENIZERS[kind].encode(text)
    pieces, _ = stream(TOKENIZERS[kind], ids)
    assert "".join(pieces) == TOKENIZERS[kind].decode(ids)
    assert not any("\ufffd" in piece for piece in pieces)
    if kind != "byte fallback":  # which may add or lose a space in front
        assert "".join(pieces) == text


@by_kind
def test_a_token_costs_the_same_however_long_the_text_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TOKENIZERS[kind]
    lengths: list[int] = []
    decode = type(tokenizer).decode

    def recording(self: Any, ids: Any) -> str:
        lengths.append(len(ids))
        return decode(self, ids)

    monkeypatch.setattr(type(tokenizer), "decode", recording)
    decoder = StreamDecoder(tokenizer, stop=["never there", "a" * 10 + "!"])
    [token] = [i for i in tokenizer.encode("a") if tokenizer.decode([i])]
    for _ in range(500):
        decoder.push(token)
    assert max(lengths) <= 2
    assert len(decoder._held) <= 10


def first_stop(text: str, stops: list[str]) -> str | None:
    """What stands before the stop string that is complete first, one character after the other."""
    for end in range(1, len(text) + 1):
        complete = [s for s in stops if text[:end].endswith(s)]
        if complete:
            return text[: end - max(map(len, complete))]
    return None


@by_kind
@settings(max_examples=200)
@given(data=st.data())
def test_text_ends_before_the_first_stop_string_however_tokens_cut_it(kind: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[kind]
    letters = "ab, " if kind != "no decoder" else "ab "
    stops = data.draw(st.lists(st.text(letters, min_size=1, max_size=4), min_size=1, max_size=3))
    ids = tokenizer.encode(data.draw(st.text(letters, max_size=30)))
    text = tokenizer.decode(ids)
    expected = first_stop(text, stops)
    pieces, decoder = stream(tokenizer, ids, stops)
    assert "".join(pieces) == (text if expected is None else expected)
    assert decoder.stopped == (expected is not None)


def test_a_stop_string_across_tokens_is_never_shown_in_part() -> None:
    decoder = StreamDecoder(ByteTokenizer(), stop=("\n\nUser:", "€"))
    pieces = [decoder.push(byte) for byte in b"a\n\nb\n\nUser: more"]
    assert [piece for piece in pieces if piece] == ["a", "\n\nb"]
    assert decoder.stopped
    assert decoder.flush() == ""
    euro = StreamDecoder(ByteTokenizer(), stop="€")
    assert [euro.push(byte) for byte in "x€y".encode()] == ["x", "", "", "", ""]


def test_what_only_began_like_a_stop_string_comes_with_flush() -> None:
    decoder = StreamDecoder(ByteTokenizer(), stop=["STOP"])
    assert "".join(decoder.push(byte) for byte in b"a STO") == "a "
    assert decoder.flush() == "STO"
    assert not decoder.stopped


@pytest.mark.parametrize("stop", ["", [""], ["a", ""], [1]])
def test_empty_stop_strings_are_refused(stop: Any) -> None:
    with pytest.raises(RequestError, match="stop strings must not be empty"):
        StreamDecoder(ByteTokenizer(), stop=stop)


@pytest.fixture(scope="module", params=["byte level", "bos", "no bos"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    backend = byte_level() if request.param == "byte level" else sentencepiece(bos=request.param == "bos")
    folder = save(tmp_path_factory.mktemp("tokenizer"), backend, bos_token="<s>", eos_token="</s>")
    ours = load_tokenizer(folder)
    assert ours is not None
    return ours, AutoTokenizer.from_pretrained(folder)


@given(text=st.text(st.one_of(st.sampled_from("ab ä€🙂\n▁"), st.characters(codec="utf-8"))))
def test_encoding_and_decoding_equal_transformers(pair: tuple[Tokenizer, Any], text: str) -> None:
    ours, theirs = pair
    ids = ours.encode(text)
    assert ids == theirs.encode(text, add_special_tokens=True)
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.vocab_size == len(theirs)


def test_truncation_and_padding_of_a_saved_tokenizer_are_not_applied(tmp_path: Path) -> None:
    backend = byte_level()
    backend.enable_truncation(2)
    backend.enable_padding(length=8)
    tokenizer = load_tokenizer(save(tmp_path, backend))
    assert tokenizer is not None
    assert tokenizer.decode(tokenizer.encode("longer than two tokens")) == "longer than two tokens"
    assert len(tokenizer.encode("a")) == 1


@pytest.mark.parametrize("where", ["config", "named", "file"])
def test_chat_equals_transformers_and_brings_one_bos_only(tmp_path: Path, where: str) -> None:
    template: Any = LLAMA3_TEMPLATE
    if where == "named":
        template = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": LLAMA3_TEMPLATE}]
    config: dict[str, Any] = {"bos_token": {"content": "<s>", "__type": "AddedToken"}, "eos_token": "</s>"}
    save(tmp_path, sentencepiece(), **config, chat_template="not this" if where == "file" else template)
    if where == "file":
        (tmp_path / "chat_template.jinja").write_text(LLAMA3_TEMPLATE, encoding="utf-8")
    ours = load_tokenizer(tmp_path)
    assert ours is not None
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = ours.chat(CHAT)
    assert text == theirs.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    encoded = theirs.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False)
    assert ours.encode(text) == encoded
    assert encoded.count(1) == 1


@pytest.mark.parametrize(
    ("template", "messages", "says"),
    [
        (None, CHAT, "brings no chat template"),
        (LLAMA3_TEMPLATE, [{"role": "tool", "content": ""}], "no tools here"),
        (LLAMA3_TEMPLATE, ["hi"], "cannot render these messages"),
        ("{{ messages.__class__.__mro__ }}", CHAT, "unsafe"),
        ("{% for %}", CHAT, "cannot render these messages"),
    ],
)
def test_a_chat_that_cannot_be_written_is_a_request_error(template: str | None, messages: Any, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        Tokenizer(byte_level(), {}, template).chat(messages)


@by_kind
def test_half_a_character_is_refused_with_its_position(kind: str) -> None:
    with pytest.raises(RequestError, match=r"not valid Unicode.*at position 1"):
        TOKENIZERS[kind].encode("a\ud83d")


def test_a_folder_without_a_tokenizer_gives_none(tmp_path: Path) -> None:
    assert load_tokenizer(tmp_path) is None
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert load_tokenizer(tmp_path) is None


def test_files_of_an_older_format_are_read_through_transformers(tmp_path: Path) -> None:
    model = json.loads(byte_level().to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps({**model["vocab"], "<|endoftext|>": len(model["vocab"])}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(m) for m in model["merges"]) + "\n")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer is not None
    assert tokenizer.encode(" hello") == byte_level().encode(" hello").ids
    assert tokenizer.decode(tokenizer.encode("größer 🙂")) == "größer 🙂"


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x00 no tokenizer")
    with pytest.raises(ModelNotFoundError, match=rf"{tmp_path}.*(fetch the model again|Save it once)"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_is_loaded_and_used_without_transformers_and_torch(tmp_path: Path) -> None:
    save(tmp_path, byte_level(), chat_template=LLAMA3_TEMPLATE)
    script = (
        "import sys; from pathlib import Path; from onelaunch.models.tokenizer import *\n"
        "t = load_tokenizer(Path(sys.argv[1])); t.decode(t.encode(t.chat([{'role': 'user', 'content': 'x'}])))\n"
        "StreamDecoder(t).push(5)\n"
        "print([name for name in ('transformers', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
