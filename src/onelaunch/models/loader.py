"""From a name to a model that runs: the embedded SmolLM2, a hub name, a local folder, or small random weights.

Importing this module does not import transformers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from onelaunch.errors import ModelNotFoundError
from onelaunch.models.config import ModelConfig
from onelaunch.models.layers import MergedLinear, RMSNorm
from onelaunch.models.llama import LlamaForCausalLM
from onelaunch.models.qwen3 import Qwen3ForCausalLM
from onelaunch.models.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer

EMBEDDED = "smollm2-135m"
FAMILIES: dict[str, type[LlamaForCausalLM]] = {"llama": LlamaForCausalLM, "qwen3": Qwen3ForCausalLM}

_TINY = ModelConfig(
    family="llama",
    vocab_size=ByteTokenizer.vocab_size,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=2048,
    eos_token_ids=(ByteTokenizer.eos_token_id,),
)
RANDOM = {
    "llama": _TINY,
    # head_dim is not hidden / heads here, as in Qwen3's own small models
    "qwen3": replace(_TINY, family="qwen3", head_dim=32, rope_theta=1_000_000.0),
}


@dataclass(frozen=True)
class LoadedModel:
    name: str
    config: ModelConfig
    model: LlamaForCausalLM
    tokenizer: Tokenizer | ByteTokenizer | None  # None: the checkpoint brings none


def load_model(name: str | Path, *, device: torch.device, dtype: torch.dtype, max_seq_len: int) -> LoadedModel:
    """Load a model by name.

    name: ``"smollm2-135m"``; ``"random:llama"`` or ``"random:qwen3"``; a folder as transformers saves it; or a hub
    name such as ``"Qwen/Qwen3-0.6B"``. max_seq_len: longest sequence to prepare for; the model's own
    limit where that is shorter.

    Raises ModelNotFoundError with what was asked, what was found and what to do.
    """
    text = str(name)
    if text.startswith("random:"):
        return _load_random(text, device, dtype, max_seq_len)
    folder = find_folder(text)
    config = ModelConfig.from_folder(folder)
    model = empty_model(config, device, dtype, max_seq_len)
    with _Checkpoint(folder) as checkpoint:
        try:
            model.load_weights(checkpoint.tensor)
        except KeyError as error:
            raise ModelNotFoundError(f"the weights in {folder} lack the tensor {error}.") from error
        except (RuntimeError, ValueError) as error:
            raise ModelNotFoundError(f"the weights in {folder} do not fit its config.json: {error}") from error
    return LoadedModel(text, config, model, load_tokenizer(folder))


def find_folder(name: str) -> Path:
    """The folder of a checkpoint: fetched and converted, local, or from the hub (and then from its cache)."""
    if name == EMBEDDED:
        from onelaunch.models import embedded  # brings gguf, which only the first start needs

        return embedded.fetch()
    local = Path(name).expanduser()
    if name and local.is_dir():
        return local
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise ModelNotFoundError(
            f"unknown model {name!r}: not a folder here. Known names: {EMBEDDED!r}, "
            f"{', '.join(repr('random:' + family) for family in RANDOM)}, or a hub name such as 'Qwen/Qwen3-0.6B'."
        )
    return _download(name)


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]))
    except Exception as error:  # the hub client raises a dozen kinds; all mean the same here
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelNotFoundError(
            f"cannot get {name!r} from the hub ({reason}). Check the name and the network, or use a local folder, "
            f"{EMBEDDED!r}, or 'random:llama', which needs no network."
        ) from error


def _load_random(name: str, device: torch.device, dtype: torch.dtype, max_seq_len: int) -> LoadedModel:
    family = name.removeprefix("random:")
    if family not in RANDOM:
        raise ModelNotFoundError(f"unknown model {name!r}: random models are {', '.join(RANDOM)}.")
    config = RANDOM[family]
    model = empty_model(config, device, dtype, max_seq_len)
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        # Wide enough that the next token depends on the whole context, not on the last token alone.
        return torch.randn(shape, generator=generator) * 0.15

    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, MergedLinear):
                module.load([random(sum(module.out_features), module.weight.shape[0])], [None])
            elif isinstance(module, RMSNorm):
                module.weight.fill_(1.0)
        model.embed_tokens.weight.copy_(random(*model.embed_tokens.weight.shape))
    return LoadedModel(name, config, model, ByteTokenizer())


def empty_model(config: ModelConfig, device: torch.device, dtype: torch.dtype, max_seq_len: int) -> LlamaForCausalLM:
    """A model of these shapes whose weights nobody has filled in."""
    length = min(max_seq_len, config.max_position_embeddings)
    with _defaults(dtype), device:
        return FAMILIES[config.family](config, length).eval()


@contextmanager
def _defaults(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Checkpoint:
    """Tensors of a folder by name, from one safetensors file or from several with an index."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        index = folder / "model.safetensors.index.json"
        if index.is_file():
            self._file_of: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            files = sorted(set(self._file_of.values()))
        else:
            self._file_of = {}
            files = ["model.safetensors"]
        from safetensors import SafetensorError, safe_open

        self._open = {}
        for file in files:
            path = folder / file
            if not path.is_file():
                raise ModelNotFoundError(f"no {file} in {folder}: weights are read from safetensors files only.")
            try:
                self._open[file] = safe_open(path, framework="pt")
            except SafetensorError as error:
                raise ModelNotFoundError(f"{path} is damaged ({error}): fetch the model again.") from error
            if file not in self._file_of.values():
                self._file_of.update(dict.fromkeys(self._open[file].keys(), file))

    def tensor(self, name: str) -> Tensor | None:
        file = self._file_of.get(name)
        return None if file is None else self._open[file].get_tensor(name)

    def __enter__(self) -> _Checkpoint:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._open.clear()
