"""A prompt that does not fit the window, in the words by which clients of Anthropic's API know it.

Claude Code compacts the conversation at one sentence. At the other it asks for a shorter answer,
the window less the prompt less 1,000 tokens, up to ten times (measured with 2.1.197).

vLLM stops counting where a prompt exceeds the room that the answer leaves, so what it tells of a
prompt is often this bound. Told as it is, it would have the client come down by 1,000 tokens a
request and give up; so the prompt is then put so high that the next answer is half as long.
"""

from __future__ import annotations

import re

_NUMBER = r"(\d[\d,]{0,14})"

# vLLM 0.6 to 0.32, by where each one states the figure.
_WINDOW = re.compile(
    rf"maximum context length (?:is|of) {_NUMBER}"
    rf"|maximum context length \({_NUMBER}\)"
    rf"|maximum model length of {_NUMBER}"
    rf"|max_model_len=(?:max_total_tokens=)?{_NUMBER}"
    rf"|max_total_tokens={_NUMBER}"
)
_PROMPT = re.compile(
    rf"\({_NUMBER} in the (?:messages|prompt)"
    rf"|(?:contains|has)(?: at least)? {_NUMBER} input tokens"
    rf"|resulted in {_NUMBER} tokens"
    rf"|prompt \(length {_NUMBER}\)"
    rf"|Input length \({_NUMBER}\)"
)
_ANSWER = re.compile(
    rf"{_NUMBER} in the completion"
    rf"|requested {_NUMBER} output tokens"
    rf"|is too large: {_NUMBER}"
    rf"|max_(?:completion_)?tokens={_NUMBER}"
)
# A prompt of more characters than that many tokens can have is not even tokenized.
_MORE_THAN = re.compile(rf"upper bound for {_NUMBER} input tokens")
_KEPT_BACK = 1000
_ALREADY = re.compile(r"prompt is too long|exceed context limit", re.IGNORECASE)


def in_anthropics_words(message: str) -> str:
    """The sentence a client of the Messages API recognises, from an engine's.

    >>> in_anthropics_words("Input length (9000) exceeds model's maximum context length (8192).")
    'prompt is too long: 9000 tokens > 8192 maximum'
    """
    if _ALREADY.search(message):
        return message
    window, prompt, answer = (_figure(one, message) for one in (_WINDOW, _PROMPT, _ANSWER))
    more_than = _figure(_MORE_THAN, message)
    if prompt is None and more_than is not None:
        prompt = more_than + 1
    if window is None or (prompt is None and answer is None):
        return f"prompt is too long: {message}"
    if not answer or (prompt or 0) >= window:
        # A prompt that fills the window leaves no room for a token of the answer.
        return f"prompt is too long: {max(prompt or 0, window + 1)} tokens > {window} maximum"
    # Where only the answer was judged: every prompt has a token.
    prompt = prompt or 1
    if prompt != window - answer + 1:
        return _both(prompt, answer, window)
    estimate = max(prompt, window - answer // 2 - _KEPT_BACK)
    return f"{_both(estimate, answer, window)} (estimated, since it was not counted: {message})"


def _both(prompt: int, answer: int, window: int) -> str:
    return f"input length and `max_tokens` exceed context limit: {prompt} + {answer} > {window}"


def _figure(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    if found is None:
        return None
    return int(next(group for group in found.groups() if group).replace(",", ""))
