"""Two network namespaces with a cable that can be pulled, if the system lets us make them."""

import shutil
import subprocess
from contextlib import suppress
from itertools import count
from os import getpid
from typing import Final, final

NEAR, FAR = "10.213.0.1", "10.213.0.2"  # these addresses exist only in the namespaces
SUBNET: Final = "10.213.0.0/30"
_NUMBERS = count()


def ip(command: str) -> None:
    """Run `ip`."""
    done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise OSError(f"ip {command}: {done.stderr}")


@final
class Cable:
    """Two namespaces, `near` and `far`, with an address each and a cable between them."""

    def __init__(self) -> None:
        number = f"{getpid()}-{next(_NUMBERS)}"
        self.near, self.far = f"belated-near-{number}", f"belated-far-{number}"
        try:
            for name in (self.near, self.far):
                ip(f"netns add {name}")
            ip(f"link add cable netns {self.near} type veth peer name cable netns {self.far}")
            for name, address in ((self.near, NEAR), (self.far, FAR)):
                ip(f"-n {name} address add {address}/30 dev cable")
                ip(f"-n {name} link set lo up")
                ip(f"-n {name} link set cable up")
        except OSError:
            self.remove()
            raise

    def cut(self) -> None:
        """Pull it out at the near end. At the far end packets vanish without an error."""
        ip(f"-n {self.near} link set cable down")

    def heal(self) -> None:
        """Put it back."""
        ip(f"-n {self.near} link set cable up")

    def remove(self) -> None:
        """Remove both namespaces."""
        for name in (self.near, self.far):
            with suppress(OSError):
                ip(f"netns delete {name}")


def inside(namespace: str, *options: str) -> list[str]:
    """The command that runs another in a namespace."""
    return ["nsenter", f"--net=/run/netns/{namespace}", *options, "--"]


def are_there() -> bool:
    """Whether this machine lets us make networks."""
    if not (shutil.which("ip") and shutil.which("nsenter")):
        return False
    try:
        Cable().remove()
    except OSError:
        return False
    return True
