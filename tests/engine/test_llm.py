"""What a user of ``LLM`` meets: results, streaming, stop conditions, and clear errors that cost nobody anything."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onelaunch import LLM, ModelNotFoundError, RequestError, SamplingParams

GOOD = [10, 20, 30]
SHORT = SamplingParams(max_tokens=8, ignore_eos=True)


def test_generate_answers_in_order_and_counts_tokens(tiny: LLM) -> None:
    one, two = tiny.generate(["ab", "cd"], [SHORT, SamplingParams(max_tokens=3, ignore_eos=True)])
    assert (len(one["token_ids"]), len(two["token_ids"])) == (8, 3)
    assert one["finish_reason"] == two["finish_reason"] == "length"
    assert one["text"] == tiny.tokenizer.decode(one["token_ids"])  # type: ignore[union-attr]  # tiny has one


def test_one_prompt_is_a_text_or_a_list_of_token_ids(tiny: LLM) -> None:
    assert tiny.generate("ab", SHORT) == tiny.generate([97, 98], SHORT) == tiny.generate([[97, 98]], SHORT)
    assert tiny.generate([]) == []


def test_stream_and_generate_agree(tiny: LLM) -> None:
    prompts = ["ab", "a longer prompt", "ab"]
    results = tiny.generate(prompts, SHORT)
    pieces = list(tiny.stream(prompts, SHORT))
    for index, result in enumerate(results):
        own = [piece for piece in pieces if piece.index == index]
        assert "".join(piece.text for piece in own) == result["text"]
        assert [piece.token_id for piece in own] == result["token_ids"]
        assert [piece.finish_reason for piece in own] == [None] * 7 + ["length"]


def test_two_streams_can_be_read_in_turn(tiny: LLM) -> None:
    expected = [result["token_ids"] for result in tiny.generate(["one", "two"], SHORT)]
    got: list[list[int | None]] = [[], []]
    for first, second in zip(tiny.stream("one", SHORT), tiny.stream("two", SHORT), strict=True):
        got[0].append(first.token_id)
        got[1].append(second.token_id)
    assert got == expected


def test_leaving_a_stream_early_gives_its_pages_back(tiny: LLM) -> None:
    stream = tiny.stream("abc", SamplingParams(max_tokens=100, ignore_eos=True))
    next(stream)
    assert tiny.engine.allocator.num_available < tiny.num_pages
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert tiny.engine.allocator.num_available == tiny.num_pages
    assert not tiny.scheduler.has_work


def test_end_of_text_ends_unless_ignored(tiny: LLM) -> None:
    free = tiny.generate(GOOD, SamplingParams(max_tokens=40, ignore_eos=True))[0]["token_ids"]
    config = tiny.config
    try:
        # Whatever the random model says third becomes its end-of-text token.
        object.__setattr__(config, "eos_token_ids", (free[2],))
        cut = tiny.generate(GOOD, SamplingParams(max_tokens=40))[0]
        whole = tiny.generate(GOOD, SamplingParams(max_tokens=40, ignore_eos=True))[0]
    finally:
        object.__setattr__(config, "eos_token_ids", (256,))
    assert cut["token_ids"] == free[: free.index(free[2]) + 1]
    assert cut["finish_reason"] == "stop"
    assert whole["token_ids"] == free


def test_a_stop_string_ends_the_text_before_it(smollm2: LLM) -> None:
    whole = smollm2.generate("Count: one, two, three,", SamplingParams(max_tokens=24))[0]
    words = whole["text"].split(",")
    stop = f",{words[2]}"  # spans several tokens
    cut = smollm2.generate("Count: one, two, three,", SamplingParams(max_tokens=24, stop=stop))[0]
    assert cut["finish_reason"] == "stop"
    assert cut["text"] == whole["text"][: whole["text"].index(stop)]
    pieces = list(smollm2.stream("Count: one, two, three,", SamplingParams(max_tokens=24, stop=[stop, "never"])))
    assert "".join(piece.text for piece in pieces) == cut["text"]


def test_a_seed_gives_the_same_text_in_any_company(tiny: LLM) -> None:
    seeded = SamplingParams(temperature=1.0, seed=7, max_tokens=12, ignore_eos=True)
    other = SamplingParams(temperature=2.0, max_tokens=20, ignore_eos=True)
    alone = tiny.generate("ab", seeded)[0]
    assert tiny.generate(["xyz", "ab", "q"], [other, seeded, other])[1] == alone
    assert tiny.generate("ab", seeded)[0] == alone
    different = SamplingParams(temperature=1.0, seed=8, max_tokens=12, ignore_eos=True)
    assert tiny.generate("ab", different)[0] != alone


def test_without_a_seed_texts_differ(tiny: LLM) -> None:
    params = SamplingParams(temperature=3.0, max_tokens=16, ignore_eos=True)
    assert tiny.generate("ab", params) != tiny.generate("ab", params)


def test_a_sequence_ends_at_the_limit() -> None:
    with LLM("random:llama", device="cpu", max_seq_len_override=16) as llm:
        result = llm.generate([1] * 10, SamplingParams(max_tokens=100, ignore_eos=True))[0]
        assert (len(result["token_ids"]), result["finish_reason"]) == (6, "length")
        with pytest.raises(RequestError, match=r"has 16 tokens.*may have 16.*max_seq_len_override"):
            llm.generate([1] * 16)


BAD: dict[str, tuple[Any, SamplingParams, str]] = {
    "empty text": ("", SHORT, "empty"),
    "empty ids": ([], SHORT, "empty"),
    "id out of range": ([5, 257], SHORT, "0 to 256"),
    "negative id": ([-1], SHORT, "0 to 256"),
    "not a prompt": (3.5, SHORT, "float"),
    "None": (None, SHORT, "NoneType"),
    "too long": ([1] * 5000, SHORT, "max_seq_len_override"),
    "too many pages": ([1] * 200, SHORT, "num_page_override"),
    "max_tokens 0": (GOOD, SamplingParams(max_tokens=0), "max_tokens must be an int >= 1; found 0"),
    "max_tokens -3": (GOOD, SamplingParams(max_tokens=-3), "max_tokens"),
    "max_tokens float": (GOOD, SamplingParams(max_tokens=2.0), "max_tokens"),  # type: ignore[arg-type]  # on purpose
    "NaN temperature": (GOOD, SamplingParams(temperature=math.nan), "temperature must be a number >= 0; found nan"),
    "infinite temperature": (GOOD, SamplingParams(temperature=math.inf), "temperature"),
    "negative temperature": (GOOD, SamplingParams(temperature=-1.0), "temperature"),
    "top_k 0": (GOOD, SamplingParams(top_k=0), "top_k"),
    "top_p 0": (GOOD, SamplingParams(top_p=0.0), "top_p"),
    "top_p NaN": (GOOD, SamplingParams(top_p=math.nan), "top_p"),
    "seed text": (GOOD, SamplingParams(seed="x"), "seed"),  # type: ignore[arg-type]  # on purpose
    "empty stop": (GOOD, SamplingParams(stop=""), "stop"),
    "stop of nothing": (GOOD, SamplingParams(stop=["a", ""]), "stop"),
}


@pytest.fixture(scope="module")
def small() -> Any:
    with LLM("random:llama", device="cpu", num_page_override=8) as llm:
        yield llm


@pytest.mark.parametrize("case", BAD)
def test_one_bad_request_does_not_take_the_others_down(case: str, small: LLM) -> None:
    prompt, params, said = BAD[case]
    with pytest.raises(RequestError, match=said):
        small.submit(prompt, params)
    expected = small.generate([GOOD, GOOD], SHORT)
    with pytest.warns(UserWarning, match="1 of 3 requests were refused; the first is prompt 1"):
        first, bad, last = small.generate([GOOD, prompt, GOOD], [SHORT, params, SHORT])
    assert [first, last] == expected
    assert (bad["text"], bad["token_ids"], bad["finish_reason"]) == ("", [], "error")
    assert said.split(".*")[0] in bad["error"]
    pieces = list(small.stream([prompt, GOOD], [params, SHORT]))
    assert (pieces[0].index, pieces[0].finish_reason) == (0, "error")
    assert [piece.token_id for piece in pieces[1:]] == expected[0]["token_ids"]
    assert small.engine.allocator.num_available == small.num_pages
    assert not small.scheduler.has_work


def test_when_every_request_is_bad_the_error_is_raised(small: LLM) -> None:
    with pytest.raises(RequestError, match=r"prompt 0: .*empty.*\nprompt 1: .*empty"):
        small.generate(["", ""])


def test_a_list_of_params_must_fit_the_prompts(small: LLM) -> None:
    with pytest.raises(ValueError, match="2 prompts came with 1 sampling_params"):
        small.generate([GOOD, GOOD], [SHORT])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-17", "unknown model 'gpt-17'.*'smollm2-135m'.*'random:llama'"),
        ("random:gpt", "random models are llama, qwen3"),
        ("./no/such/folder", "not a folder here"),
        ("", "unknown model ''"),
    ],
)
def test_an_unknown_model_says_which_there_are(name: str, said: str) -> None:
    with pytest.raises(ModelNotFoundError, match=said):
        LLM(name)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attention_backend": "magic"}, "attention_backend='magic' is not known; there is torch"),
        ({"max_running_req": 0}, "max_running_req must be at least 1"),
        ({"num_page_override": -1}, "num_page_override must be at least 1"),
        ({"max_seq_len_override": 1_000_000}, "beyond what"),
        ({"device": "tpu"}, "device='tpu' is not known: this engine runs on 'cpu' and 'cuda'"),
        ({"device": "meta"}, "device='meta' is not known"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LLM("random:llama", **{"device": "cpu", **settings})


def test_without_a_tokenizer_ids_still_work(tmp_path: Path) -> None:
    from tests.models.test_against_transformers import save_random_model

    save_random_model(tmp_path, "Llama")
    with LLM(tmp_path, device="cpu") as llm:
        assert len(llm.generate([1, 2, 3], SHORT)[0]["token_ids"]) == 8
        with pytest.raises(RequestError, match=r"brings no tokenizer \(tokenizer.json\).*Give token ids instead"):
            llm.generate("text")
        with pytest.raises(RequestError, match="stop strings cannot be found"):
            llm.generate([1, 2, 3], SamplingParams(stop="x"))


def test_after_shutdown_it_says_so() -> None:
    llm = LLM("random:qwen3", device="cpu")
    handle = llm.submit("abc")
    llm.shutdown()
    llm.shutdown()
    assert handle.finish_reason == "abort"
    with pytest.raises(RuntimeError, match="shut down"):
        llm.generate("abc")


def test_the_engine_starts_without_transformers() -> None:
    code = (
        "import sys, onelaunch; assert 'torch' not in sys.modules\n"
        "from onelaunch import LLM, SamplingParams\n"
        "with LLM('random:llama') as llm: llm.generate('ab', SamplingParams(max_tokens=2))\n"
        "heavy = {'transformers', 'matplotlib', 'gguf', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
