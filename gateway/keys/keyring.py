"""Who asks: a request's credential becomes a key.

Keys are kept as SHA-256 digests only, so neither a core dump's reader nor a careless log line
finds one here.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256

from gateway.errors import Unauthorized
from gateway.settings import KeySettings
from gateway.settings.strength import MINIMUM_BITS

Headers = Sequence[tuple[bytes, bytes]]

# Settings refuse keys of fewer bits; url-safe base64, the densest usual form, holds six in each
# character.
SHORTEST_KEY = math.ceil(MINIMUM_BITS / 6)

SEND = "send `Authorization: Bearer <key>` or `x-api-key: <key>`"
NO_CREDENTIAL = f"No key was sent: {SEND}."
NOT_BEARER = f"The Authorization header does not say `Bearer <key>`: {SEND}."
UNKNOWN = (
    "The key in the {header} header is not one of this gateway's, which have at least "
    f"{SHORTEST_KEY} characters: check that it was copied whole and is meant for this base URL."
)


@dataclass(frozen=True, slots=True)
class Key:
    """What the holder of one key may do; nothing here is secret.

    Attributes:
        id: the first 12 hexadecimal digits of the key's SHA-256; the same after a restart.
        models: model ids, or patterns of them.
        arms: the arms the key may choose by hand: `any`, `none`, or their names.
        requests_per_minute, tokens_per_minute, max_concurrency: None is no limit.
        cache_salt: the key's prefix cache is its own.
        expose_arm: replies say which arm and backend served.
        engine_fields: fields that act on other keys' requests may pass.
    """

    id: str
    name: str
    models: tuple[str, ...] = ("*",)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_concurrency: int | None = None
    arms: str | tuple[str, ...] = "any"
    cache_salt: bool = False
    expose_arm: bool = True
    engine_fields: bool = False

    def allows_model(self, model_id: str) -> bool:
        """Whether the key may use the model of this configured id."""
        models = self.models
        if "*" in models or model_id in models:
            return True
        return any(fnmatchcase(model_id, pattern) for pattern in models)

    def allows_arm(self, arm: str) -> bool:
        """Whether the key may choose this arm by hand."""
        if isinstance(self.arms, str):
            return self.arms == "any"
        return arm in self.arms


class KeyRing:
    """The keys of one configuration.

    Args:
        keys: valid, as `gateway.settings.load` returns them; no two are the same key.
    """

    __slots__ = ("_by_digest", "keys")

    def __init__(self, keys: Sequence[KeySettings]) -> None:
        digests = [_digest(key) for key in keys]
        self.keys = tuple(_key(digest, key) for digest, key in zip(digests, keys, strict=True))
        self._by_digest = dict(zip(digests, zip(digests, self.keys, strict=True), strict=True))

    def __repr__(self) -> str:
        return f"<KeyRing of {len(self.keys)} keys>"

    def authenticate(self, headers: Headers) -> Key:
        """The key a request carries, as a bearer token or in `x-api-key`.

        Where both stand, the bearer counts; if it is not a key of this gateway, the other is
        tried: some clients put a placeholder in the header that they were not configured for.

        Args:
            headers: names in lower case.

        Raises:
            Unauthorized: says which header to send, and never repeats what was sent.
        """
        bearer: bytes | None = None
        plain = b""
        for name, value in headers:
            if name == b"authorization":
                if bearer is None:
                    bearer = value
            elif name == b"x-api-key" and not plain:
                plain = value.strip()
        token = _bearer_token(bearer) if bearer is not None else b""
        key = self._find(token) if token else None
        if key is None and plain:
            key = self._find(plain)
        if key is None:
            raise _refusal(bearer, token, plain)
        return key

    def _find(self, token: bytes) -> Key | None:
        digest = sha256(token).digest()
        found = self._by_digest.get(digest)
        # The look-up's time depends on the digest of a guess at most, which nobody can steer; the
        # comparison in full leaves no question of how a dict compares.
        if found is not None and hmac.compare_digest(found[0], digest):
            return found[1]
        return None


def _bearer_token(value: bytes) -> bytes:
    """The token of an Authorization header; empty if it is another scheme or there is none."""
    scheme, _, token = value.strip().partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _refusal(bearer: bytes | None, token: bytes, plain: bytes) -> Unauthorized:
    if token:
        header = "Authorization or x-api-key" if plain else "Authorization"
        return Unauthorized(UNKNOWN.format(header=header))
    if plain:
        return Unauthorized(UNKNOWN.format(header="x-api-key"))
    return Unauthorized(NO_CREDENTIAL if bearer is None else NOT_BEARER)


def _digest(settings: KeySettings) -> bytes:
    if settings.key_sha256 is not None:
        return bytes.fromhex(settings.key_sha256)
    assert settings.key is not None, "settings make sure that one of the two is set"
    return sha256(settings.key.get_secret_value().encode()).digest()


def _key(digest: bytes, settings: KeySettings) -> Key:
    return Key(
        id=digest.hex()[:12],
        name=settings.name,
        models=tuple(settings.models),
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        max_concurrency=settings.max_concurrency,
        arms=settings.arms if isinstance(settings.arms, str) else tuple(settings.arms),
        cache_salt=settings.cache_salt,
        expose_arm=settings.expose_arm,
        engine_fields=settings.engine_fields,
    )
