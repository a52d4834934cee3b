"""Where the guarded fetcher does not go: addresses by their kind, every spelling of a host, ports,
and what is left to a proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock import Unreachable
from interlock.addresses import peculiarity
from interlock.http11.proxies import Proxies
from interlock.http11.safe_fetch import BlockedAddress, SafeFetch
from tests.transport.http_peers import get, once, serving
from tests.transport.internet import OTHER, PUBLIC, SIX, Internet

KINDS = {
    "an address without a host": ["0.0.0.0", "0.1.2.3", "::"],
    "a private address": ["10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "fc00::1",
        "fd12:3456::1", "fec0::1", "::ffff:10.0.0.1",
                          "64:ff9b::192.168.1.1"],
    "an address behind a carrier's NAT": ["100.64.0.1", "100.127.255.254"],
    "a loopback address": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1",
        "64:ff9b::7f00:1"],
    "a link-local address": ["169.254.0.1", "fe80::1", "febf::1", "::ffff:169.254.1.1"],
    "an address reserved for protocols": ["192.0.0.1", "2001:10::1", "2001:1ff:ffff::1"],
    "an address for documentation": ["192.0.2.1", "198.51.100.7", "203.0.113.9", "2001:db8::1",
        "3fff::1"],
    "an address of 6to4 relays": ["192.88.99.1"],
    "an address for benchmarks": ["198.18.0.1", "198.19.255.254"],
    "a multicast address": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "a reserved address": ["240.0.0.1", "255.255.255.255", "4000::1", "5f00::1", "1::1", "100::1"],
    "an IPv4 address embedded in IPv6": ["::127.0.0.1", "::8.8.8.8"],
    "an address for a local NAT64": ["64:ff9b:1::a00:1"],
    "a Teredo address": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "a 6to4 address": ["2002:7f00:1::1", "2002:808:808::1"],
    "an address with a zone index": ["fe80::1%eth0", "::1%lo", "2606:4700::1111%1"],
    "the metadata service of a cloud provider": ["169.254.169.254", "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "169.254.170.2",
                                          "100.100.100.200", "168.63.129.16", "192.0.0.192",
                                          "fd20:ce::254"],
}  # fmt: skip
ADDRESSES = [(address, kind) for kind, addresses in KINDS.items() for address in addresses]


def bracketed(address: str) -> str:
    """As it stands in a URL."""
    return f"[{address.replace('%', '%25')}]" if ":" in address else address


async def outcome(
    url: str, answers: Sequence[str] = (PUBLIC,), **settings: Any
) -> tuple[Internet, Unreachable]:
    """What becomes of a GET where every name has the same addresses and nobody listens anywhere."""
    internet = Internet({}, routed=())

    async def resolve(host: str, port: int) -> Sequence[str]:
        """The system's reading of short, octal and hexadecimal addresses; else the answers."""
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            return answers

    fetch = internet.fetch(resolve=resolve, **settings)
    with pytest.raises(Unreachable) as caught:
        await fetch(get(url))
    await fetch.aclose()
    return internet, caught.value


async def refused(url: str, answers: Sequence[str] = (PUBLIC,), **settings: Any) -> str:
    """Why it is refused; it must be, before anything is dialled."""
    internet, bad = await outcome(url, answers, **settings)
    assert isinstance(bad, BlockedAddress), f"{url} {bad!r}"
    assert not internet.dialled
    return str(bad)


@pytest.mark.parametrize("address, kind", ADDRESSES, ids=[address for address, _ in ADDRESSES])
async def test_addresses_that_are_not_public(address: str, kind: str):
    """Refused by their kind: in the URL, behind a name, and behind a name that has a public one
    too, in any order (SEC-12, SEC-14, AUR-10).
    """
    here = {"loopback": True} if address in ("127.0.0.1", "127.255.255.254", "::1") else {}
    if not here:
        assert kind in await refused(f"https://{bracketed(address)}/")
    for answers in ([address], [PUBLIC, address], [address, PUBLIC]):
        words = await refused("https://evil.example/", answers, **here)
        assert kind in words
        assert "https://evil.example" in words
        assert address not in words, (
            "who asks learns the kind, and not where a name of the inside leads"
        )


@pytest.mark.parametrize(
    "address",
    [
        PUBLIC,
        OTHER,
        SIX,
        "1.1.1.1",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "172.32.0.1",
    ],
)
async def test_public_addresses_are_asked(address: str):
    """Those of the IPv4 internet in an IPv6 form that is routed, too; what was resolved is what is
    dialled (SEC-14).
    """
    for url in (f"https://{bracketed(address)}/", "https://a.example/"):
        internet, bad = await outcome(url, [address])
        assert not isinstance(bad, BlockedAddress)
        assert [ipaddress.ip_address(host) for host, _ in internet.dialled] == [
            ipaddress.ip_address(address)
        ]


@given(
    st.ip_addresses()
    | st.sampled_from(
        [ipaddress.ip_address(address) for address, _ in ADDRESSES if "%" not in address]
    )
)
def test_what_the_standard_library_does_not_call_global_is_not_public(address: Any):
    """Its judgement is not ours, but ours is nowhere more lenient than it (SEC-14)."""
    lenient = address.version == 6 and (
        address.ipv4_mapped or address in ipaddress.ip_network("64:ff9b::/96")
    )
    if not lenient and (
        not address.is_global
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    ):
        assert peculiarity(address) is not None


NOT_PUBLIC = st.sampled_from(
    [address for address, _ in ADDRESSES if ":" not in address]
) | st.ip_addresses(v=4).map(str)


@given(NOT_PUBLIC)
def test_an_address_in_the_forms_that_ipv6_has_for_it(text: str):
    """Mapped and through NAT64 it is what it is; as compatible, 6to4 and Teredo addresses nobody is
    asked (SEC-14).
    """
    four = ipaddress.IPv4Address(text)
    number = int(four)
    kind = peculiarity(four)
    for above in (0xFFFF << 32, 0x64FF9B << 96):
        assert peculiarity(ipaddress.IPv6Address(above + number)) == kind
    for six in (
        number,
        (0x2002 << 112) + (number << 80),
        (0x20010000 << 96) + (number ^ 0xFFFFFFFF),
        (0x20010000 << 96) + (number << 64),
    ):
        assert peculiarity(ipaddress.IPv6Address(six)) is not None


@st.composite
def spellings(draw: st.DrawFn, text: str) -> str:
    """A host of a URL that some program would take for an IPv4 address."""
    number = int(ipaddress.IPv4Address(text))
    count = draw(st.integers(1, 4))
    parts = [number >> 8 * (3 - n) & 255 for n in range(count - 1)] + [
        number & (1 << 8 * (5 - count)) - 1
    ]
    forms = ("{:d}", "0x{:x}", "0X{:X}", "0{:o}", "00{:o}", "0x00{:x}")
    host = ".".join(draw(st.sampled_from(forms)).format(part) for part in parts) + draw(
        st.sampled_from(("", ".", "..", "%2e"))
    )
    wide = {ord(char): ord(char) + 0xFEE0 for char in "0123456789abcdefx."}
    how = draw(st.sampled_from(("plain", "percent", "wide", "dots", "circled")))
    if how == "percent":
        return "".join(f"%{ord(char):02x}" if draw(st.booleans()) else char for char in host)
    if how == "wide":
        return host.lower().translate(wide)
    if how == "dots":
        return host.replace(".", "。")
    if how == "circled":
        return host.replace("1", "①")
    return host


@given(
    st.data(), NOT_PUBLIC.filter(lambda text: peculiarity(ipaddress.ip_address(text)) is not None)
)
def test_no_spelling_hides_an_address(data: st.DataObject, text: str):
    """Decimal, octal, hexadecimal, short, with trailing dots, percent-encoded, in other digits:
    refused, with a proxy too (SEC-14).
    """
    host = data.draw(spellings(text))
    for proxies in (Proxies(), Proxies(https="http://127.0.0.1:9")):
        asyncio.run(refused(f"https://{host}/", proxies=proxies))


@given(
    st.ip_addresses(v=6).filter(lambda address: peculiarity(address) is not None),
    st.sampled_from(["compressed", "exploded"]),
    st.booleans(),
)
@example(ipaddress.IPv6Address("::ffff:7f00:1"), "exploded", True)
def test_no_spelling_hides_an_ipv6_address(address: ipaddress.IPv6Address, form: str, upper: bool):
    """Long, short, in capitals, with the last part as IPv4 (SEC-14)."""
    text = getattr(address, form)
    four = f"{address.exploded[:30]}{ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)}"
    for one in (text, four):
        asyncio.run(refused(f"https://[{one.upper() if upper else one}]/"))


ODD = {
    "http://a.example/": "only https is encrypted in transit",
    "http://93.184.216.34/": "only https is encrypted in transit",
    "file:///etc/passwd": "no https URL",
    "ftp://a.example/": "no https URL",
    "gopher://a.example/": "no https URL",
    "javascript:alert(1)": "no https URL",
    "data:text/plain,hello": "no https URL",
    "//a.example/": "no https URL",
    "https:///a": "no https URL",
    "https:a.example": "no https URL",
    "": "no https URL",
    " https://a.example/": "no https URL",
    "https://a.exa\tmple/": "no https URL",
    "https://a.example/\r\nHost: b.example": "no https URL",
    "https://a.example:0/": "no https URL",
    "https://a.example:99999/": "no https URL",
    "https://a.example:x/": "no https URL",
    "https://[::1/": "no https URL",
    "https://[v1.x]/": "no https URL",
    "https://[a.example]/": "no https URL",
    "https://[93.184.216.34]/": "no https URL",
    "https://a.example[::1]/": "no https URL",
    "https://[::1]a.example/": "no https URL",
    "https://a.example\\@127.0.0.1/": "a user name or a password",
    "https://a.example@127.0.0.1/": "a user name or a password",
    "https://user:s3cret@a.example/": "a user name or a password",
    "https://:s3cret@a.example/": "a user name or a password",
    "https://@a.example/": "a user name or a password",
    "https://127.0.0.1\\@a.example/": "a user name or a password",
    "https://127.0.0.1#@a.example/": "this machine",
    "https://127.0.0.1?@a.example/": "this machine",
    "https://127.0.0.1/@a.example": "this machine",
    "https://%6cocalhost/": "this machine",
    "https://LOCALHOST/": "this machine",
    "https://localhost./": "this machine",
    "https://a.localhost%2e/": "this machine",
    "https://ｌｏｃａｌｈｏｓｔ/": "this machine",
    "https://localhost。/": "this machine",
    "https://[::1]/": "this machine",
    "https://a.example%40127.0.0.1/": "no https URL",
    "https://a.example%EF%BC%A0evil.example/": "no https URL",
    "https://a.example%E2%84%80.evil.example/": "no https URL",
    "https://a.example%00.evil.example/": "no https URL",
    "https://a.example%2f.evil.example/": "no https URL",
    "https://a%EF%BC%9A80/": "no https URL",
    "https://a　b.example/": "no https URL",
    "https://%2531.example/": "no https URL",
    "https://[fe80::1%25a%0d%0ab]/": "no https URL",
    "https://[fe80::1%25eth0]/": "an address with a zone index",
    "https://127.1/": "neither a name nor an address",
    "https://2130706433/": "neither a name nor an address",
    "https://0x7f.0.0.1/": "neither a name nor an address",
    "https://0177.0.0.1/": "neither a name nor an address",
    "https://93.184.216.034/": "neither a name nor an address",
    "https://1.2.3.4.5/": "neither a name nor an address",
    "https://a.example.1/": "neither a name nor an address",
    "https://a..example/": "neither a name nor an address",
    f"https://{'a' * 64}.example/": "neither a name nor an address",
    f"https://{'a.' * 126}example/": "neither a name nor an address",
}


@pytest.mark.parametrize("url, words", ODD.items(), ids=[repr(url)[:50] for url in ODD])
async def test_urls_that_are_not_asked(url: str, words: str):
    """Other schemes, users and passwords, hosts that two programs might read differently; by a
    name's words alone (SEC-13, SEC-14, SEC-22).
    """
    for proxies in (Proxies(), Proxies(https="http://127.0.0.1:9", http="http://127.0.0.1:9")):
        said = await refused(url, proxies=proxies)
        assert words in said
        assert "s3cret" not in said


@pytest.mark.parametrize("host, name", [("a.example", "a.example"), ("A.Example.", "a.example"),
    ("bücher.example", "xn--bcher-kva.example"),
                                        ("%61.example", "a.example"),
                                            ("a_b.example", "a_b.example"),
                                                ("1a.example", "1a.example")])  # fmt: skip
async def test_names_in_other_spellings_are_judged_by_what_they_resolve_to(host: str, name: str):
    """IDN, capitals, a trailing dot, percent-encoding: the name that is resolved is the one that is
    meant (SEC-14).
    """
    internet = Internet({name: [[PUBLIC], ["10.0.0.1"]]}, routed=())
    fetch = internet.fetch()
    with pytest.raises(Unreachable, match="Nothing listens"):
        await fetch(get(f"https://{host}/"))
    with pytest.raises(BlockedAddress, match="a private address"):
        await fetch(get(f"https://{host}/"))
    await fetch.aclose()
    assert (internet.asked, internet.dialled) == ([name, name], [(PUBLIC, 443)])


@pytest.mark.parametrize(
    "port", [1, 22, 25, 80, 389, 442, 444, 993, 1023, 2049, 6000, 6379, 6667, 11211]
)
async def test_ports_at_which_no_web_server_listens(port: int):
    """Refused, so that nobody makes us knock at other services (SEC-12)."""
    assert "its port is not one of a web server" in await refused(f"https://a.example:{port}/")
    assert "its port is not one of a web server" in await refused(
        f"http://127.0.0.1:{443 if port == 80 else port}/", loopback=True
    )


@pytest.mark.parametrize("port", [443, 1024, 8080, 8443, 9443, 65535])
async def test_ports_at_which_web_servers_listen(port: int):
    """Those are asked."""
    internet, bad = await outcome(f"https://a.example:{port}/")
    assert (internet.dialled, "Nothing listens" in str(bad)) == ([(PUBLIC, port)], True)


async def test_names_without_an_address():
    """Not found is not refused; an answer that is no address is."""
    _, bad = await outcome("https://a.example/", [])
    assert "The host a.example was not found" in str(bad)
    assert not isinstance(bad, BlockedAddress)
    assert "does not resolve to a valid address" in await refused(
        "https://a.example/", ["a.example"]
    )


@pytest.mark.parametrize("url, answers", [("http://localhost/", [PUBLIC]),
    ("https://a.localhost/", ["127.0.0.1", "10.0.0.1"]),
                                          ("http://localhost/", ["::ffff:127.0.0.1"]),
                                              ("http://localhost/", ["0.0.0.0"])])  # fmt: skip
async def test_what_says_that_it_is_this_machine_must_be(url: str, answers: list[str]):
    """Else http would go over a network (SEC-13)."""
    assert "should be this machine, but it is not" in await refused(url, answers, loopback=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/",
        "http://10.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://127.1/",
    ],
)
async def test_development_does_not_open_more_than_this_machine(url: str):
    """With loopback=True all else stands: http elsewhere, addresses of the inside, disguises, names
    that lead here (SEC-13, SEC-14).
    """
    await refused(url, loopback=True)
    await refused(url.replace("http:", "https:"), ["127.0.0.1"], loopback=True)


async def test_networks_of_ones_own():
    """What is allowed is reached, also by name, and nothing beside it; the metadata of a cloud
    never is (SEC-14).
    """
    settings = {"networks": ["10.1.0.0/16", "169.254.0.0/16", "fd00::/8"]}
    for url, answers in (
        ("https://10.1.2.3/", []),
        ("https://idp.corp.example/", ["10.1.2.3", PUBLIC]),
        ("https://[fd00:1::1]/", []),
    ):
        internet, bad = await outcome(url, answers, **settings)
        assert internet.dialled
        assert not isinstance(bad, BlockedAddress)
    assert "networks=" in await refused("https://idp.corp.example/", ["10.2.0.1"], **settings)
    for address in ("169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254"):
        assert "metadata" in await refused("https://a.example/", [address], **settings)
    with pytest.raises(ValueError, match="host bits"):
        SafeFetch(networks=["10.1.0.1/16"])


async def test_hosts_that_alone_are_asked():
    """By name, by all names below one, by address; and they must be public all the same."""
    settings = {"hosts": ["idp.example", "*.Keys.Example", "bücher.example", OTHER]}
    for host in (
        "idp.example",
        "a.keys.example",
        "a.b.keys.example",
        "xn--bcher-kva.example",
        OTHER,
        "IDP.example.",
    ):
        internet, bad = await outcome(f"https://{host}/", **settings)
        assert internet.dialled
        assert not isinstance(bad, BlockedAddress)
    for host in (
        "keys.example",
        "evil-keys.example",
        "a.idp.example",
        "idp.example.evil.example",
        PUBLIC,
    ):
        assert "not among the allowed hosts" in await refused(f"https://{host}/", **settings)
    assert "a private address" in await refused("https://idp.example/", ["10.0.0.1"], **settings)
    for wrong in ("https://a.example", "a.example:8443", "a b", ""):
        with pytest.raises(ValueError, match="host|needed"):
            SafeFetch(hosts=[wrong])


async def test_through_an_egress_proxy(monkeypatch: pytest.MonkeyPatch):
    """The proxy resolves; addresses are judged before, and so are names that are never public; this
    machine is not asked of it (SEC-16).
    """
    async with serving(once(b"HTTP/1.1 403 Not allowed to go there\r\n\r\n")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        fetch = SafeFetch()
        trusting = SafeFetch(hosts=["*.internal", "intranet"])
        for url in ("https://a.example/", f"https://{PUBLIC}/", f"https://[{SIX}]/"):
            with pytest.raises(Unreachable, match="would not connect to .*: 403 Not allowed"):
                await fetch(get(url))
        for url in ("https://10.0.0.1/", "https://[fd00:ec2::254]/",
            "https://metadata.google.internal/", "https://intranet/", "https://a.local/",
                    "https://nas.home.arpa/", "https://a.localhost/", "http://a.example/",
                    "https://0x7f000001/"):  # fmt: skip
            with pytest.raises(BlockedAddress):
                await fetch(get(url))
        for url in ("https://a.internal/", "https://intranet/"):
            with pytest.raises(Unreachable, match="403"):
                await trusting(get(url))
        await fetch.aclose()
        await trusting.aclose()
    asked = ["a.example", PUBLIC, f"[{SIX}]", "a.internal", "intranet"]
    assert [seen.line for seen in proxy.requests] == [
        f"CONNECT {host}:443 HTTP/1.1" for host in asked
    ]
    here = Proxies(http="http://127.0.0.1:9", https="http://127.0.0.1:9")
    assert [
        here.toward("http", host, 80)
        for host in ("localhost", "a.localhost", "A.LOCALHOST.", "127.0.0.2")
    ] == [None] * 4
    assert here.toward("http", "notlocalhost", 80)


async def test_the_systems_own_resolver():
    """Where none is given; a name of this machine leads to this machine."""
    fetch = SafeFetch(loopback=True, proxies=Proxies())
    async with serving(once(b"HTTP/1.1 204 No Content\r\n\r\n"), name="localhost") as peer:
        assert (await fetch(get(peer.url))).status == 204
    await fetch.aclose()
