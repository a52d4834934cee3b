"""Which addresses belong to the public internet, and what the others are: the registries of special
addresses (RFC 6890) as tables."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Tables of our own: what the standard library calls global differs between its releases,
# and leaves some of these out.
_SPECIAL: dict[str, str] = {
    "0.0.0.0/8": "an address without a host",
    "10.0.0.0/8": "a private address",
    "100.64.0.0/10": "an address behind a carrier's NAT",
    "127.0.0.0/8": "a loopback address",
    "169.254.0.0/16": "a link-local address",
    "172.16.0.0/12": "a private address",
    "192.0.0.0/24": "an address of the protocols themselves",
    "192.0.2.0/24": "an address for documentation",
    "192.88.99.0/24": "an address of 6to4 relays",
    "192.168.0.0/16": "a private address",
    "198.18.0.0/15": "an address for benchmarks",
    "198.51.100.0/24": "an address for documentation",
    "203.0.113.0/24": "an address for documentation",
    "224.0.0.0/4": "a multicast address",
    "240.0.0.0/4": "a reserved address",
    "::/128": "an address without a host",
    "::1/128": "a loopback address",
    "::/96": "an IPv4 address in disguise",
    "64:ff9b:1::/48": "an address of a NAT64 of one's own",
    "2001::/32": "a Teredo address",
    "2001::/23": "an address of the protocols themselves",
    "2001:db8::/32": "an address for documentation",
    "2002::/16": "a 6to4 address",
    "3fff::/20": "an address for documentation",
    "fc00::/7": "a private address",
    "fe80::/10": "a link-local address",
    "fec0::/10": "a private address",
    "ff00::/8": "a multicast address",
}
_KINDS: list[tuple[Network, str]] = [(ip_network(text), kind) for text, kind in _SPECIAL.items()]
_GIVEN_OUT = IPv6Network("2000::/3")  # all that is routed is of this part
_NAT64 = IPv6Network(
    "64:ff9b::/96"
)  # the IPv4 internet, seen from a network that has IPv6 only (RFC 6052)
_METADATA = frozenset(
    {
        IPv4Address("169.254.169.254"),  # most clouds
        IPv4Address("169.254.170.2"),  # Amazon, containers
        IPv4Address("169.254.170.23"),  # Amazon, pods
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("168.63.129.16"),  # Azure's platform; it looks like a public one
        IPv4Address("192.0.0.192"),  # Oracle
        IPv6Address("fd00:ec2::254"),  # Amazon
        IPv6Address("fd00:ec2::23"),  # Amazon, pods
        IPv6Address("fd20:ce::254"),  # Google
    }
)


def meant(address: Address) -> Address:
    """The IPv4 address that is reached by its IPv6 form, mapped (RFC 4291,
    2.5.5.2) or through NAT64; any other as it is."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _has_zone(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.scope_id is not None


def is_loopback(address: Address) -> bool:
    """Whether it is an address of this machine, said plainly: none in disguise."""
    return address.is_loopback and meant(address) is address and not _has_zone(address)


def is_here(host: str) -> bool:
    """Whether a host says by its spelling that it is this machine: "localhost", a name below it
    (RFC 6761, 6.3), or a loopback address."""
    try:
        return is_loopback(ip_address(host))
    except ValueError:
        return f".{host}".endswith(".localhost")


def is_metadata(address: Address) -> bool:
    """Whether a cloud keeps there what only the machine itself should know,
    its credentials above all."""
    return meant(address) in _METADATA


def peculiarity(address: Address) -> str | None:
    """What an address is that is not of the public internet, like "a private address";
    None for a public one."""
    if is_metadata(address):
        return "the address of a cloud's metadata"
    if _has_zone(address):
        return "an address with a zone"
    address = meant(address)
    for network, kind in _KINDS:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GIVEN_OUT:
        return "a reserved address"
    return None


def network_of(address: str) -> str:
    """The network that an address counts for: a client with IPv6 has a whole /64 of them."""
    if ":" not in address:
        return address
    try:
        known = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(known.ipv4_mapped or ip_network((known, 64), strict=False))
