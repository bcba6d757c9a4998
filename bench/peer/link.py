#!/usr/bin/env python3
"""What two hosts can send each other over one TCP connection: the floor of what communicates between them, by plain sockets of Python.

usage: link.py answer ADDRESS | link.py measure ADDRESS PORT

`answer` prints the port on which it waits for one `measure`, which runs on the other host and prints a JSON line.
"""
import json
import socket
import statistics
import subprocess
import sys
import time

ROUND_TRIPS = 5000
ROUNDS = 3  # of which the best counts
BYTES = 512 << 20  # of one round
PART = 1 << 20  # of one call


def receive(connection, size, buffer):
    while size > 0:
        got = connection.recv_into(buffer, min(size, len(buffer)))
        if got == 0:
            raise ConnectionError("the other host has closed the connection")
        size -= got


def answer(address):
    with socket.create_server((address, 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    buffer = memoryview(bytearray(PART))
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for size in [1] * ROUND_TRIPS + [BYTES] * ROUNDS:
            receive(connection, size, buffer)
            connection.sendall(buffer[:1])


def measure(address, port):
    buffer = memoryview(bytearray(PART))

    def seconds_until_answered(size):
        began = time.perf_counter()
        for _ in range(0, size, PART):
            connection.sendall(buffer[:size])
        receive(connection, 1, buffer)
        return time.perf_counter() - began

    with socket.create_connection((address, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        round_trips = [seconds_until_answered(1) for _ in range(ROUND_TRIPS)]
        rounds = [seconds_until_answered(BYTES) for _ in range(ROUNDS)]
    return {"round_trip_us": 1e6 * statistics.median(round_trips), "gb_per_s": BYTES / min(rounds) / 1e9}


def between(hosts, addresses):
    """Figures of the link from host 0 to host 1 of a HostPair."""
    there = hosts.on(1, sys.executable, __file__, "answer", addresses[1])
    with subprocess.Popen(there, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as answering:
        try:
            here = hosts.on(0, sys.executable, __file__, "measure", addresses[1], answering.stdout.readline().strip())
            return json.loads(subprocess.run(here, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout)
        finally:
            answering.kill()


if __name__ == "__main__":
    if sys.argv[1] == "answer":
        answer(sys.argv[2])
    else:
        print(json.dumps(measure(*sys.argv[2:])))
