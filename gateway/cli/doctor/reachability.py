"""Does anything answer at the address, and in the language expected?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gateway.cli.address import Address
from gateway.cli.asking import Kind, Reply, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.settings import Settings

TOPIC = Topic("reachability")

Told = tuple[str, str, str]


def check(case: Case) -> Iterator[Finding]:
    """Connection, name, TLS and HTTP, asked directly: no proxy in between."""
    front, address = case.front, case.address
    if isinstance(front, Unanswered):
        yield TOPIC.error(*_EXPLAIN[front.kind](case, front))
    elif front.status == 400 and address.scheme == "http" and _speaks_tls(case):
        yield TOPIC.error(*_tls_wanted(address))
    else:
        yield TOPIC.ok(f"{address.root} answers.")


def _refused(case: Case, front: Unanswered) -> Told:
    address = case.address
    seen = f"Connection refused: nothing listens on port {address.port} of {address.host}."
    settings = case.settings
    if isinstance(settings, Settings) and settings.server.port not in (0, address.port):
        port = settings.server.port
        return (
            seen,
            f"{case.config} has the gateway listen on port {port}, so clients knock at a wrong "
            "door.",
            f"export GATEWAY_URL={address.scheme}://{address.host}:{port}",
        )
    if address.loopback:
        why = (
            f"No client can get through. Within a container {address.host} is the container "
            "itself, not the machine it runs on."
        )
        return seen, why, f"gateway serve -c {case.config or 'gateway.yaml'}"
    why = (
        "No client can get through: the gateway is not started there, listens on another port, "
        "or on 127.0.0.1 alone, as is the default."
    )
    return seen, why, "server: {host: 0.0.0.0}   # in gateway.yaml, and put TLS in front"


def _unresolved(case: Case, front: Unanswered) -> Told:
    host = case.address.host
    return (
        f"The name {host} has no address ({front.detail}).",
        "Clients fail before they send anything: a typing error, a name of another network, or "
        "a container's name used outside of its network.",
        f"getent hosts {host}",
    )


def _unreachable(case: Case, front: Unanswered) -> Told:
    address = case.address
    return (
        f"There is no way to {address.host}: {front.detail}.",
        "Clients fail before they send anything; a route, a VPN or the network itself is missing.",
        f"ping -c 3 {address.host}",
    )


def _no_connection(case: Case, front: Unanswered) -> Told:
    address = case.address
    return (
        f"{address.host}, port {address.port}, neither accepts nor refuses within "
        f"{case.ask.timeout:g} s.",
        "Clients hang until they give up: a firewall drops the packets, or the machine is off "
        "or out of its depth.",
        f"nc -vz -w 5 {address.host} {address.port}",
    )


def _silent(case: Case, front: Unanswered) -> Told:
    address = case.address
    return (
        f"{address.root} accepts connections, but says nothing within {case.ask.timeout:g} s.",
        "Clients wait for their first token until they give up: it is another kind of server, "
        "or one that hangs.",
        f"curl -sv -m 10 {address.root}/health",
    )


def _no_tls(case: Case, front: Unanswered) -> Told:
    address = case.address
    other = address.other_scheme()
    if isinstance(case.ask(f"{other}/"), Reply):
        return (
            f"Port {address.port} of {address.host} speaks plain HTTP, not TLS ({front.detail}).",
            "Clients that were given https:// fail in the handshake, before they send anything.",
            f"export GATEWAY_URL={other}",
        )
    return (
        f"The TLS handshake with {address.host}, port {address.port}, fails ({front.detail}).",
        "Clients fail before they send anything.",
        f"openssl s_client -connect {address.host}:{address.port} </dev/null",
    )


def _certificate(case: Case, front: Unanswered) -> Told:
    return (
        f"The certificate of {case.address.host} is not trusted: {front.detail}.",
        "Clients refuse the connection; each has its own setting for a private authority "
        "(SSL_CERT_FILE; NODE_EXTRA_CA_CERTS for Claude Code and other Node programs).",
        "export SSL_CERT_FILE=/path/to/ca.pem NODE_EXTRA_CA_CERTS=/path/to/ca.pem",
    )


def _no_http(case: Case, front: Unanswered) -> Told:
    address = case.address
    if address.scheme == "http" and _speaks_tls(case):
        return _tls_wanted(address)
    return (
        f"What listens on port {address.port} of {address.host} does not speak HTTP "
        f"({front.detail}).",
        "Clients break off at its first bytes. A port forwarder without its target behaves so, "
        "and so does a server of another kind.",
        "export GATEWAY_URL=http://HOST:PORT",
    )


def _tls_wanted(address: Address) -> Told:
    return (
        f"Port {address.port} of {address.host} speaks TLS, and was given as http://.",
        "Clients get a broken connection or HTTP 400 instead of an answer.",
        f"export GATEWAY_URL={address.other_scheme()}",
    )


def _speaks_tls(case: Case) -> bool:
    found = case.ask(f"{case.address.other_scheme()}/")
    return isinstance(found, Reply) or found.kind is Kind.CERTIFICATE


_EXPLAIN: dict[Kind, Callable[[Case, Unanswered], Told]] = {
    Kind.REFUSED: _refused,
    Kind.UNRESOLVED: _unresolved,
    Kind.UNREACHABLE: _unreachable,
    Kind.NO_CONNECTION: _no_connection,
    Kind.SILENT: _silent,
    Kind.NO_TLS: _no_tls,
    Kind.CERTIFICATE: _certificate,
    Kind.NO_HTTP: _no_http,
}
