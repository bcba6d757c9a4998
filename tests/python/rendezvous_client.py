"""What Horovod's client does as hvd.init() meets over Gloo (horovod/common/gloo), on each rank and twice: hvd.shutdown(), hvd.init().

In the scopes of all ranks, of its host and of its local rank it puts down an address, polls for those of the others, and finishes. Each
request has a connection of its own, and the answer is read to the end of that.
"""

import http.client
import os
import time

LIMIT = 60  # seconds for the others to come


def request(method, path, value=None):
    """-> status, body."""
    server = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
    connection = http.client.HTTPConnection(*server, timeout=LIMIT)
    try:
        connection.request(method, path, value)
        answer = connection.getresponse()
        assert answer.will_close
        return answer.status, answer.read()
    finally:
        connection.close()


def put(scope, key, value):
    status, _ = request("PUT", f"/{scope}/{key}", value)
    assert status == 200, status


def get(scope, key):
    """Polls until somebody has put it."""
    until = time.monotonic() + LIMIT
    while True:
        status, value = request("GET", f"/{scope}/{key}")
        if status == 200:
            return value
        assert status == 404, status
        assert time.monotonic() < until, f"nobody has put {scope}/{key}"
        time.sleep(0.01)


def meet(scope, rank, size, attempt):
    """-> what each rank of the scope has put."""
    put(scope, rank, f"{os.environ['HOROVOD_RANK']}:{attempt}".encode() + bytes(range(256)))
    found = [get(scope, each) for each in range(size)]
    status, _ = request("DELETE", f"/{scope}/{rank}")
    assert status == 200, status
    assert all(value.endswith(bytes(range(256))) for value in found)
    return [value[:-256].decode() for value in found]


def variable(name):
    return int(os.environ[f"HOROVOD_{name}"])


def meet_all(attempt):
    met = [meet("global", variable("RANK"), variable("SIZE"), attempt),
           meet(f"local_{os.environ['HOROVOD_HOSTNAME']}", variable("LOCAL_RANK"), variable("LOCAL_SIZE"), attempt),
           meet(f"cross_{os.environ['HOROVOD_LOCAL_RANK']}", variable("CROSS_RANK"), variable("CROSS_SIZE"), attempt)]
    # As hvd.shutdown() waits for every rank.
    put(f"between_{attempt}", variable("RANK"), b"")
    for rank in range(variable("SIZE")):
        get(f"between_{attempt}", rank)
    return met


def main():
    assert os.environ["HOROVOD_CONTROLLER"] == os.environ["HOROVOD_CPU_OPERATIONS"] == "gloo"
    for attempt in (1, 2):
        met = meet_all(attempt)
        print("result", attempt, *(" ".join(each) for each in met), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
