#!/usr/bin/env python3
"""Programs that close our libraries and go on."""
from harness import Client, check, left_nothing, main, test, under, wait_until


class Unloader(Client):
    def __init__(self, place, what):
        self.start(place, [str(place.bin / "unload_client"), str(place.lib / "libhalsoft.so"), what])


@test
def opening_and_closing_the_libraries_again_and_again_leaves_nothing(place):
    place.start_server()
    Client(place, 5, "task")
    client = Unloader(place, "again")
    check(client.process.wait(30) == 0, f"it ends well: {client.process.returncode}")
    client.reader.join()
    left_nothing(client.lines[-1], "closed", 512)
    wait_until(lambda: len(place.queues()) == 1, "the server has forgotten its queues")


@test
@under("address")
def closing_the_libraries_over_a_busy_queue_loses_nothing(place):
    place.start_server()
    client = Unloader(place, "busy")
    wait_until(lambda: "closed" in client.lines, "the library is closed")
    check([q["pid"] for q in place.queues()] == [client.process.pid], "its queue is still scheduled")
    check(client.process.wait(30) == 5, f"it ends as it wanted to: {client.process.returncode}")
    client.reader.join()
    check(client.lines == ["closed", "it went on", "1500 finished"], f"{client.lines}")


if __name__ == "__main__":
    main(__doc__)
