"""Every way in which vLLM says that a request does not fit, in the words Claude Code knows."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.clients.too_long import in_anthropics_words

# The patterns by which Claude Code 2.1 recognises the two; what it reads are the figures.
PROMPT = re.compile(r"prompt is too long: (\d+) tokens > (\d+) maximum")
BOTH = re.compile(r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)")

NOW = (
    "This model's maximum context length is {window} tokens. However, you requested {answer} "
    "output tokens and your prompt contains at least {prompt} input tokens, for a total of at "
    "least {total} tokens. Please reduce the length of the input prompt or the number of requested "
    "output tokens."
)


def now(window: int, prompt: int, answer: int) -> str:
    return NOW.format(window=window, prompt=prompt, answer=answer, total=prompt + answer)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
            " (8500 in the messages, 500 in the completion). Please reduce the length of the "
            "messages or completion.",
            "prompt is too long: 8500 tokens > 8192 maximum",
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
            " (8000 in the messages, 1000 in the completion).",
            "input length and `max_tokens` exceed context limit: 8000 + 1000 > 8192",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4200 tokens"
            " (200 in the prompt, 4000 in the completion).",
            "input length and `max_tokens` exceed context limit: 200 + 4000 > 4096",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, your request has 5000 "
            "input tokens. Please reduce the length of the input messages.",
            "prompt is too long: 5000 tokens > 4096 maximum",
        ),
        (
            "This model's maximum context length is 4096 tokens. However, your messages resulted "
            "in 4096 tokens.",
            "prompt is too long: 4097 tokens > 4096 maximum",
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum "
            "context length is 4096 tokens and your request has 2778 input tokens "
            "(8000 > 4096 - 2778). None",
            "input length and `max_tokens` exceed context limit: 2778 + 8000 > 4096",
        ),
        (
            now(131072, 120000, 32000),
            "input length and `max_tokens` exceed context limit: 120000 + 32000 > 131072",
        ),
        (now(262144, 262145, 0), "prompt is too long: 262145 tokens > 262144 maximum"),
        (now(8192, 8192, 1), "prompt is too long: 8193 tokens > 8192 maximum"),
        (
            "The decoder prompt (length 12324) is longer than the maximum model length of 8192. "
            "Make sure that `max_model_len` is no smaller than the number of text tokens.",
            "prompt is too long: 12324 tokens > 8192 maximum",
        ),
        (
            "The decoder prompt (length 2048) plus the number of requested output tokens (at least "
            "1) is longer than the maximum model length of 2048.",
            "prompt is too long: 2049 tokens > 2048 maximum",
        ),
        (
            "Input length (66001) exceeds model's maximum context length (65536).",
            "prompt is too long: 66001 tokens > 65536 maximum",
        ),
        (
            "Input length (66,275) exceeds model's maximum context length (65,536).",
            "prompt is too long: 66275 tokens > 65536 maximum",
        ),
        (
            "max_tokens=8888 cannot be greater than max_model_len=max_total_tokens=3072. Please "
            "request fewer output tokens.",
            "input length and `max_tokens` exceed context limit: 1 + 8888 > 3072",
        ),
        (
            "max_tokens=8888 cannot be greater than max_model_len=3072.",
            "input length and `max_tokens` exceed context limit: 1 + 8888 > 3072",
        ),
        (
            "This model's maximum context length is exceeded.",
            "prompt is too long: This model's maximum context length is exceeded.",
        ),
        (
            "prompt is too long: 213462 tokens > 200000 maximum",
            "prompt is too long: 213462 tokens > 200000 maximum",
        ),
    ],
)
def test_wordings(said: str, told: str) -> None:
    assert in_anthropics_words(said) == told


@given(st.integers(1, 2_000_000), st.integers(1, 2_000_000), st.integers(0, 2_000_000))
def test_the_figures_are_those_of_the_engine_and_are_too_many(
    window: int, prompt: int, answer: int
) -> None:
    assume(prompt != window - answer + 1)
    said = in_anthropics_words(now(window, prompt, answer))
    if both := BOTH.fullmatch(said):
        assert tuple(map(int, both.groups())) == (prompt, answer, window)
        assert prompt < window
    else:
        alone = PROMPT.fullmatch(said)
        assert alone is not None, said
        assert int(alone[2]) == window < int(alone[1])


def asks_next(said: str) -> int | None:
    """What Claude Code asks for after this sentence; None where it compacts instead."""
    both = BOTH.search(said)
    if both is None:
        return None
    prompt, answer, window = map(int, both.groups())
    assert prompt + answer > window
    return window - prompt - 1000


UNCOUNTED = (
    "This model's maximum context length is {window} tokens. However, you requested {answer} "
    "output tokens and your prompt contains 1000000 characters (more than 122880 characters, "
    "which is the upper bound for {room} input tokens)."
)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("prompt", "requests"), [(100_000, 2), (120_000, 3), (126_000, 4)])
def test_an_answer_is_halved_where_the_engine_has_stopped_counting(
    prompt: int, requests: int, counted: bool
) -> None:
    """vLLM tells of a prompt only that it is more than the room for it."""
    window, answer, asked = 131_072, 32_000, [32_000]
    while prompt + answer > window:
        bound = window - answer + 1
        message = UNCOUNTED.format(window=window, answer=answer, room=bound - 1)
        said = in_anthropics_words(now(window, bound, answer) if counted else message)
        assert "estimated" in said and "maximum context length is 131072" in said
        answer = asks_next(said) or 0
        asked.append(answer)
    assert len(asked) == requests
    assert all(later >= earlier // 2 for earlier, later in pairwise(asked))


def test_a_short_answer_is_not_halved() -> None:
    said = in_anthropics_words(now(8192, 8192 - 1500 + 1, 1500))
    assert "context limit: 6693 + 1500 > 8192 (" in said


@given(st.text(max_size=300))
def test_no_text_makes_it_fail(said: str) -> None:
    assert "prompt is too long" in in_anthropics_words(said).lower() or BOTH.search(
        in_anthropics_words(said)
    )


def test_a_message_of_digits_costs_little() -> None:
    assert in_anthropics_words("9" * 100_000).startswith("prompt is too long: 9")
