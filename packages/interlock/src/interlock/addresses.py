"""Special-purpose IP addresses (RFC 6890): tables that say which addresses belong to the public
internet, and what kind the others are.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The tables are our own because the standard library's idea of a global address differs between
# releases and omits some of these networks.
_SPECIAL: dict[str, str] = {
    "0.0.0.0/8": "an address without a host",
    "10.0.0.0/8": "a private address",
    "100.64.0.0/10": "an address behind a carrier's NAT",
    "127.0.0.0/8": "a loopback address",
    "169.254.0.0/16": "a link-local address",
    "172.16.0.0/12": "a private address",
    "192.0.0.0/24": "an address reserved for protocols",
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
    "::/96": "an IPv4 address embedded in IPv6",
    "64:ff9b:1::/48": "an address for a local NAT64",
    "2001::/32": "a Teredo address",
    "2001::/23": "an address reserved for protocols",
    "2001:db8::/32": "an address for documentation",
    "2002::/16": "a 6to4 address",
    "3fff::/20": "an address for documentation",
    "fc00::/7": "a private address",
    "fe80::/10": "a link-local address",
    "fec0::/10": "a private address",
    "ff00::/8": "a multicast address",
}
_KINDS: list[tuple[Network, str]] = [(ip_network(text), kind) for text, kind in _SPECIAL.items()]
_GIVEN_OUT = IPv6Network("2000::/3")  # every routed IPv6 address is in this block
_NAT64 = IPv6Network(
    "64:ff9b::/96"
)  # the IPv4 internet, seen from a network that has IPv6 only (RFC 6052)
_METADATA = frozenset(
    {
        IPv4Address("169.254.169.254"),  # most clouds
        IPv4Address("169.254.170.2"),  # Amazon, containers
        IPv4Address("169.254.170.23"),  # Amazon, pods
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("168.63.129.16"),  # Azure's platform; it looks like a public address
        IPv4Address("192.0.0.192"),  # Oracle
        IPv6Address("fd00:ec2::254"),  # Amazon
        IPv6Address("fd00:ec2::23"),  # Amazon, pods
        IPv6Address("fd20:ce::254"),  # Google
    }
)


def meant(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, mapped (RFC 4291, 2.5.5.2) or NAT64; any
    other address as it is.
    """
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _has_zone(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.scope_id is not None


def is_loopback(address: Address) -> bool:
    """Whether an address is a loopback address in its plain form, not embedded in another
    address.
    """
    return address.is_loopback and meant(address) is address and not _has_zone(address)


def is_here(host: str) -> bool:
    """Whether the name of a host means this machine: "localhost", a name below it (RFC 6761, 6.3),
    or a loopback address.
    """
    try:
        return is_loopback(ip_address(host))
    except ValueError:
        return f".{host}".endswith(".localhost")


def is_metadata(address: Address) -> bool:
    """Whether an address is the metadata service of a cloud, which serves secrets of the machine,
    such as its credentials.
    """
    return meant(address) in _METADATA


def peculiarity(address: Address) -> str | None:
    """Return what kind of special address this is, such as "a private address"; None for a public
    address.
    """
    if is_metadata(address):
        return "the metadata service of a cloud provider"
    if _has_zone(address):
        return "an address with a zone index"
    address = meant(address)
    for network, kind in _KINDS:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GIVEN_OUT:
        return "a reserved address"
    return None


def network_of(address: str) -> str:
    """Return the network under which an address is counted: an IPv6 client has a whole /64."""
    if ":" not in address:
        return address
    try:
        known = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(known.ipv4_mapped or ip_network((known, 64), strict=False))
