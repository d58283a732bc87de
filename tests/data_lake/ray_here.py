"""A process that has Ray begin on this machine for a few units, and prints who listened where, and what is left."""

import ipaddress
import json
import sys

import psutil

from data_lake.runners import RAY, Runner
from errors import UserError

WORK = "tests.data_lake.test_runners:leave"


def here(folder: str) -> dict:
    me, told = psutil.Process(), {"listening": 0, "beyond": [], "raised": "", "done": 0}
    try:
        for _ in Runner(name=RAY, workers=2).run(WORK, folder, ["0", "1", "2 bad", "3"]):
            told["done"] += 1
            listening = [socket for each in [me, *me.children(recursive=True)] for socket in _listening(each)]
            told["listening"] += len(listening)
            told["beyond"] += [address for address in listening if not _is_loopback(address)]
    except UserError as error:
        told["raised"] = f"{error.code} {error.message}"
    return told | {"left": [each.name() for each in me.children(recursive=True)]}


def _listening(process: psutil.Process) -> list[str]:
    try:
        return [each.laddr.ip for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:
        return []


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return (found.ipv4_mapped or found).is_loopback if found.version == 6 else found.is_loopback


if __name__ == "__main__":
    print(json.dumps(here(sys.argv[1])), flush=True)
