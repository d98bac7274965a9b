"""Tells whose program is at the other end of a connection on this machine."""

import os
import socket
import struct
from typing import Final

SOCK_DIAG: Final = 4  # NETLINK_SOCK_DIAG. The constants are Linux's, from linux/sock_diag.h and linux/inet_diag.h
BY_FAMILY: Final = 20  # SOCK_DIAG_BY_FAMILY
REQUEST: Final = 1  # NLM_F_REQUEST
ERROR: Final = 2  # NLMSG_ERROR
ESTABLISHED: Final = 1
HEADER: Final = struct.Struct("=IHHII")
ASKED: Final = struct.Struct("=BBBxI2s2s16s16sIII")
FOUND: Final = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
ANY: Final = 2**32 - 1
ROOT: Final = 0
Address = tuple[str, int]


def is_own(peer: Address, here: Address) -> bool | None:
    """Whether the peer is a program of this process's user or of root. None if the system does not tell.

    A peer that has closed its end counts as a stranger, because Linux forgets whose it was.
    """
    try:
        user = user_of(peer, here)
    except (OSError, AttributeError):  # not Linux, or not allowed
        return None
    return user in (ROOT, os.geteuid())


def can_tell() -> bool:
    """Whether this system tells whose program is at the other end."""
    return is_own(("127.0.0.1", 1), ("127.0.0.1", 1)) is not None


def user_of(peer: Address, here: Address) -> int | None:
    """Return the user of the connected socket whose own address is `peer`. None if there is no such socket."""
    family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET
    hosts = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (peer, here)]
    ports = [port.to_bytes(2, "big") for _, port in (peer, here)]
    asked = ASKED.pack(family, socket.IPPROTO_TCP, 0, ANY, *ports, *hosts, 0, ANY, ANY)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(HEADER.pack(HEADER.size + len(asked), BY_FAMILY, REQUEST, 0, 0) + asked)
        answer = kernel.recv(4096)
    if HEADER.unpack_from(answer)[1] == ERROR:
        code = -struct.unpack_from("=i", answer, HEADER.size)[0]
        if code in (2, 3):  # ENOENT, ESRCH
            return None
        raise OSError(code, os.strerror(code))
    found = FOUND.unpack_from(answer, HEADER.size)
    state, user, inode = found[1], found[-2], found[-1]
    return int(user) if state == ESTABLISHED and inode else None
