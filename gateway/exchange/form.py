"""How a call is spoken to a backend: in the client's own API, or as chat where that is missing.

Both ways are worked out when they are first needed: most requests meet one kind of backend only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from gateway.errors import GatewayError
from gateway.protocols.fields import Fields
from gateway.protocols.rename import rename as renamed
from gateway.protocols.sanitise import messages as sane_messages
from gateway.protocols.sanitise import responses as sane_responses
from gateway.protocols.sanitise.restore import Restore
from gateway.protocols.splice import set_fields
from gateway.protocols.translate import Translation, messages, responses, tokenize
from gateway.protocols.translate.responses_tools import Names
from gateway.records import Api
from gateway.routing.backend import Backend

Changes = Mapping[str, bytes | None]

CHAT = b"/v1/chat/completions"
TOKENIZE = b"/tokenize"


class Form(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request as one kind of backend takes it.

    Attributes:
        path: as the backend knows it.
        api: what the backend's answer is written in.
        body: ready to send; the model is named as the backend knows it.
        translation: turns the answer into the client's API, where that is another one.
        names: of tools that had to be renamed on the way in.
        whole: turns an unstreamed answer into what the client asked for.
        otherwise: the answer where the backend has none.
    """

    path: bytes
    api: Api
    body: bytes
    translation: Translation | None = None
    names: Names | None = None
    whole: Callable[[bytes], bytes] | None = None
    otherwise: Callable[[], bytes] | None = None

    def answer(self, body: bytes, rename: tuple[bytes, bytes]) -> bytes:
        """An unstreamed answer as the client gets it.

        Args:
            rename: the model as the backend knows it, and as the client named it.

        Raises:
            ValueError: it is not what this backend should have answered.
        """
        if self.whole is not None:
            return self.whole(body)
        if self.names is not None:
            body = Restore(self.names).whole(body)
        return renamed(body, *rename)


class Forms(Protocol):
    """The ways to speak one call."""

    def fits(self, backend: Backend) -> bool:
        """Whether there is one that this backend understands."""

    def of(self, backend: Backend) -> Form:
        """The one to use with it.

        Raises:
            BadRequest: the request asks for what cannot be said that way.
        """

    def change(self, backend: Backend, form: Form, error: GatewayError) -> bool:
        """Whether the same backend may answer if it is asked in another way, which `of` then is.

        Args:
            form: in which it was asked.
        """


class OneForm:
    """A call that is spoken one way only."""

    __slots__ = ("_form", "_needs")

    def __init__(self, form: Form, needs: Api) -> None:
        self._form = form
        self._needs = needs

    def fits(self, backend: Backend) -> bool:
        return backend.offers(self._needs)

    def of(self, backend: Backend) -> Form:
        return self._form

    def change(self, backend: Backend, form: Form, error: GatewayError) -> bool:
        return False


class TwoForms:
    """A call of the Messages or the Responses API: native, repaired where need be, or as chat.

    Args:
        path: the route asked for, canonical.
        needs: the API a backend must have to be asked natively.
        api: what its native answer is written in.
        changes: of top-level fields, for any backend.
        cap: the name of the field among them that limits the output, if the gateway added it.
        model: as the client named it.
        created: Unix seconds.
    """

    __slots__ = (
        "_api", "_body", "_cap", "_changes", "_chat", "_created", "_fields", "_model", "_native",
        "_needs", "_path", "_request_id", "_without",
    )  # fmt: skip

    def __init__(
        self,
        *,
        path: bytes,
        needs: Api,
        api: Api,
        body: bytes,
        fields: Fields,
        changes: Changes,
        cap: str | None,
        model: str,
        request_id: str,
        created: int,
    ) -> None:
        self._path = path
        self._needs = needs
        self._api = api
        self._body = body
        self._fields = fields
        self._changes = changes
        self._cap = cap
        self._model = model
        self._request_id = request_id
        self._created = created
        self._without: set[str] = set()  # backends that were asked natively in vain
        self._native: Form | None = None
        self._chat: Form | None = None

    def fits(self, backend: Backend) -> bool:
        return self._has_route(backend) or backend.offers(Api.CHAT)

    def of(self, backend: Backend) -> Form:
        if self._has_route(backend):
            self._native = self._native or self._as_native()
            return self._native
        self._chat = self._chat or self._as_chat()
        return self._chat

    def change(self, backend: Backend, form: Form, error: GatewayError) -> bool:
        if error.code == "context_length_exceeded":
            return self._drop_cap()
        if error.code != "unsupported_api" or form is not self._native:
            return False
        self._without.add(backend.name)
        if self._api is self._needs:
            backend.lacks(self._needs)
        return backend.offers(Api.CHAT)

    def _has_route(self, backend: Backend) -> bool:
        return backend.name not in self._without and backend.offers(self._needs)

    def _drop_cap(self) -> bool:
        """Perhaps the prompt leaves no room for the limit of output that the gateway added."""
        if self._cap is None:
            return False
        self._changes = {n: v for n, v in self._changes.items() if n != self._cap}
        self._cap = self._native = self._chat = None
        return True

    def _as_native(self) -> Form:
        names: Names | None = None
        if self._needs is Api.MESSAGES:
            repairs = sane_messages.repair(self._fields)
        else:
            repairs, names = sane_responses.repair(self._fields)
        body = set_fields(self._body, {**self._changes, **repairs}, self._fields)
        return Form(path=self._path, api=self._api, body=body, names=names)

    def _as_chat(self) -> Form:
        body = set_fields(self._body, self._changes, self._fields)
        if self._api is Api.OTHER:
            return Form(
                path=TOKENIZE,
                api=Api.OTHER,
                body=tokenize.to_tokenize(body),
                whole=lambda reply: tokenize.counted(reply, body),
                otherwise=lambda: tokenize.estimate(body),
            )
        if self._api is Api.MESSAGES:
            translation = messages.translate(body, model=self._model, request_id=self._request_id)
        else:
            translation = responses.translate(
                body, model=self._model, request_id=self._request_id, created=self._created
            )
        return Form(
            path=CHAT,
            api=Api.CHAT,
            body=translation.body,
            translation=translation,
            whole=translation.whole,
        )
