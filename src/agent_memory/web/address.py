"""The address to listen on."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

from agent_memory.errors import InvalidSetting

DEFAULT: Final = "127.0.0.1:7437"
_PARTS: Final = re.compile(r"(?:\[(?P<v6>[^\]]*:[^\]]*)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})")


class Address(NamedTuple):
    """An IP address and a port; port 0 stands for any free one."""

    ip: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that ``IP:port`` or ``[IPv6]:port`` names.

        Raises:
            InvalidSetting: It names none; host names are not looked up.
        """
        match = _PARTS.fullmatch(text)
        try:
            if match is None or int(match["port"]) > 65_535:
                raise ValueError
            ip = ipaddress.ip_address(match["v6"] or match["v4"])
        except ValueError:
            raise InvalidSetting(
                f'parsing --addr "{text}" as a socket address: it must be an IP address and a port from 0 to 65535, '
                f"such as {DEFAULT} or [::1]:7437"
            ) from None
        return cls(ip, int(match["port"]))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it: 127.0.0.0/8 or ::1."""
        return is_loopback(self.ip)

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}" if self.ip.version == 4 else f"[{self.ip}]:{self.port}"


def is_loopback(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether only this machine can reach ``ip``. An IPv4 address in IPv6 clothes does not count as such."""
    return ip.is_loopback if ip.version == 4 else ip == ipaddress.IPv6Address("::1")
