"""The kinds of value an engine configuration holds, and the sentences that refuse bad ones."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from gateway.vllm.version import Version

FAULT = "fault"
"""The type of errors whose message is already the sentence for the user."""

WORD = Tag("<word>")
LIST = Tag("<list>")
"""Mark the two branches of a field that `word_or_list` decides on."""

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAG = re.compile(r"(--)?[a-z][a-z0-9._-]*")
_ONE_LINE = re.compile(r"[^\x00-\x1f\x7f]+")


def fault(sentence: str) -> PydanticCustomError:
    """An error whose text goes to the user as it is."""
    return PydanticCustomError(FAULT, "{sentence}", {"sentence": sentence})


def refused_with(sentence: str) -> WrapValidator:
    """Refuses with one sentence that tells the whole range, whatever was wrong; a bool, too."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, bool):
            raise fault(sentence)
        try:
            return handler(value)
        except ValidationError:
            raise fault(sentence) from None

    return WrapValidator(check)


def word_or_list(*words: str, otherwise: str) -> Discriminator:
    """For a field that takes a word or a list, so that a bad value has the faults of one of them.

    Args:
        words: those it takes; any text if none are given.
        otherwise: the sentence that refuses what is neither.
    """

    def tag(value: object) -> str | None:
        if isinstance(value, list):
            return LIST.tag
        known = value in words if words else isinstance(value, str)
        return WORD.tag if known else None

    return Discriminator(tag, custom_error_type=FAULT, custom_error_message=otherwise)


def matching(form: re.Pattern[str], sentence: str) -> AfterValidator:
    """Refuses text that is not of this form as a whole."""

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise fault(sentence)
        return value

    return AfterValidator(check)


def _version(value: Any) -> Version:
    if isinstance(value, Version):
        return value
    if isinstance(value, float | int):
        raise fault('must be in quotes, such as "0.10": YAML takes it for the number 0.1')
    if not isinstance(value, str):
        raise fault("must be a version of vLLM, such as 0.32")
    try:
        return Version.parse(value)
    except ValueError as error:
        raise fault(str(error)) from None


Count = Annotated[int, Field(ge=1), refused_with("must be a whole number, at least 1")]
CountOrZero = Annotated[int, Field(ge=0), refused_with("must be a whole number, at least 0")]
Share = Annotated[float, Field(gt=0, le=1), refused_with("must be above 0 and at most 1")]
Port = Annotated[int, Field(ge=1, le=65535), refused_with("must be a port, from 1 to 65535")]
Text = Annotated[
    str,
    Field(min_length=1),
    matching(_ONE_LINE, "must be one line of text, without control characters"),
]
Label = Annotated[
    str,
    matching(
        _DNS_LABEL,
        "must be a name as Kubernetes takes it: at most 63 small letters, digits and -, a letter "
        "or digit at both ends",
    ),
]
Variable = Annotated[
    str, matching(_VARIABLE, "must be the name of an environment variable: letters, digits, _")
]
FlagName = Annotated[
    str, matching(_FLAG, "must be the name of a flag of vllm serve, such as kv-cache-dtype")
]
EngineVersion = Annotated[Version, BeforeValidator(_version)]
