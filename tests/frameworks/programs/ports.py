"""Each rank listens at its port of TF_CONFIG, and rank 0 where PyTorch's and JAX's ranks meet; all ranks connect to all of them."""

import json
import os
import socket
import time

LIMIT = 60  # seconds, until all are there


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def connected(there):
    until = time.monotonic() + LIMIT
    while True:
        try:
            return socket.create_connection(there, LIMIT)
        except ConnectionRefusedError:  # its rank does not listen yet
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
places = {
    "TF_CONFIG": [address(worker) for worker in json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]],
    "MASTER_PORT": [(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))],
    "JAX_COORDINATOR_ADDRESS": [address(os.environ["JAX_COORDINATOR_ADDRESS"])],
}
# All at the same time: no two of them are one port.
servers = {name: socket.create_server(("", addresses[rank][1])) for name, addresses in places.items() if rank < len(addresses)}
for name, addresses in places.items():
    streams = [connected(there) for there in addresses]
    for stream in streams:
        stream.sendall(bytes([rank]))
    if name in servers:
        servers[name].settimeout(LIMIT)
        callers = [servers[name].accept()[0] for _ in range(size)]
        here = bytes(sorted(caller.recv(1)[0] for caller in callers))
        for caller in callers:
            caller.sendall(here)
    met = {stream.recv(size, socket.MSG_WAITALL) for stream in streams}
    print("result", rank, "met", *[list(ranks) for ranks in met], "at", len(addresses), "of", name)
