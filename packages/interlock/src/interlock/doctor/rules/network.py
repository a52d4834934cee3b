"""Rules about the way to a host: proxy, DNS, TCP, TLS and its certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..diagnostics import RuleFinding, rule
from ..facts import NetworkFacts

_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


@rule(
    "plain-http",
    "warning",
    "The server is reached without encryption",
    advice="Use https: others on the network can read and change everything.",
)
def plain_http(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """An http URL to another machine."""
    if not facts.is_secure and not facts.is_here:
        yield RuleFinding(f"{facts.url} is not encrypted in transit")


@rule(
    "proxy-fails",
    "error",
    "The proxy cannot be used",
    advice="Correct HTTPS_PROXY or HTTP_PROXY, or name the host in NO_PROXY.",
    stops=True,
)
def proxy_fails(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """The proxy of the environment is not a URL, or nothing listens there."""
    if facts.proxy_error:
        yield RuleFinding(facts.proxy_error, facts.proxy)


@rule(
    "loopback-proxied",
    "warning",
    "Other clients send requests to this machine through a proxy",
    advice="Add localhost,127.0.0.1,::1 to NO_PROXY.",
)
def loopback_proxied(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """A proxy is set, and NO_PROXY does not except this machine. Interlock always excepts it."""
    if facts.loopback_proxy:
        yield RuleFinding(
            f"{facts.loopback_proxy} is set, and NO_PROXY does not name {facts.host}", facts.host
        )


@rule(
    "dns-fails",
    "error",
    "The host has no address",
    advice="Check the name, and the network connection or VPN.",
    stops=True,
)
def dns_fails(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """The name cannot be resolved."""
    if facts.dns_error:
        yield RuleFinding(facts.dns_error, facts.host)


@rule(
    "tcp-fails",
    "error",
    "There is no connection to the host",
    advice="Check that the server is running, its port, and the firewalls in between.",
    stops=True,
)
def tcp_fails(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """Nothing listens there, or packets are dropped."""
    if facts.tcp_error:
        yield RuleFinding(facts.tcp_error, facts.host)


@rule(
    "tls-fails",
    "error",
    "The host does not speak TLS",
    advice="Check that the port is one of https. For plain http on this machine write http://.",
    stops=True,
)
def tls_fails(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """There is a TCP connection, and no TLS."""
    if facts.tls_error and not facts.certificate_error:
        yield RuleFinding(facts.tls_error, facts.host)


@rule(
    "certificate-expired",
    "error",
    "The certificate has expired",
    advice="Renew the certificate of the server.",
    stops=True,
)
def certificate_expired(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """Verification fails because of the time. The clock of this machine may be wrong too."""
    if facts.certificate_error == _EXPIRED:
        yield RuleFinding("the certificate has expired", facts.host)


@rule(
    "certificate-name",
    "error",
    "The certificate is for another host",
    advice="Use the name that the certificate has, or add this name to the certificate.",
    stops=True,
)
def certificate_name(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """The name or address of the URL is not in the certificate."""
    if facts.certificate_error in _OTHER_NAME:
        yield RuleFinding(facts.tls_error, facts.host)


@rule(
    "certificate-untrusted",
    "error",
    "The certificate is not trusted",
    advice="If it is your own CA, give it with --ca or SSL_CERT_FILE.",
    stops=True,
)
def certificate_untrusted(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """No trusted authority signed it, or an intermediate certificate is missing."""
    if facts.certificate_error and facts.certificate_error not in (_EXPIRED, *_OTHER_NAME):
        yield RuleFinding(facts.tls_error, facts.host)


@rule(
    "certificate-expires",
    "warning",
    "The certificate expires soon",
    advice="Renew the certificate of the server.",
)
def certificate_expires(facts: NetworkFacts) -> Iterator[RuleFinding]:
    """It is valid, for a few days."""
    if facts.days_left is not None and facts.days_left < facts.expiry_days:
        yield RuleFinding(f"the certificate expires in {facts.days_left:.0f} days", facts.host)


RULES: Final = (
    plain_http,
    proxy_fails,
    loopback_proxied,
    dns_fails,
    tcp_fails,
    tls_fails,
    certificate_expired,
    certificate_name,
    certificate_untrusted,
    certificate_expires,
)
