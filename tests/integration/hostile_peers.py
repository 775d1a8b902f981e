#!/usr/bin/env python3
"""Slow, broken or malicious peers of the server's socket lose their own connection, and harm no other client.

Beside each of them there is a client that another one holds. It must stay held.
"""
import fcntl
import os
import pathlib
import random
import select
import socket
import struct
import subprocess
import sys
import time

from harness import Client, check, held_client, main, test, under, wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "codegen"))
from message_description import Description  # pylint: disable=wrong-import-position

PROTOCOL = Description()
HELLO, WELCOME, QUEUE_CREATED, PING, LIST = (PROTOCOL.message(name).number
                                             for name in ("Hello", "Welcome", "QueueCreated", "Ping", "List"))
AGENT, TOOL = PROTOCOL.value_of("Agent"), PROTOCOL.value_of("Tool")
# src/ipc/control_block.h.
SEGMENT_SIZE = 4096 + 1024 * 128 + 1024 * 4 * 16
SEALS = 0x0002 | 0x0004  # F_SEAL_SHRINK, F_SEAL_GROW
TAKEN_FOR_HANGING = "xsched: the server does not answer: running unscheduled until it does"


def message(kind, body=b"", size=None):
    """Of any type, with any body, and a `size` that may be a lie."""
    return struct.pack("=HHI", kind, 0, 8 + len(body) if size is None else size) + body


def hello(role, size=None):
    body = PROTOCOL.message("Hello").pack(major=PROTOCOL.major, role=role, pid=os.getpid(), name=b"peer")[8:]
    return message(HELLO, body, size)


def queue_created(index, device, priority):
    hints = {"priority": priority, "utilization": 100, "deadline_us": -1, "laxity_us": -1}
    return PROTOCOL.message("QueueCreated").pack(index=index, level=1, device=device, hints=hints, threshold=16, batch_size=8,
                                                 handle=1, device_name=b"device")


def memfd(size=SEGMENT_SIZE, seals=SEALS):
    fd = os.memfd_create("segment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    os.posix_fallocate(fd, 0, size)  # the server makes no page
    os.pwrite(fd, struct.pack("=IIII", 0x4D475358, 1, 1024, 0), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def eventfd():
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


class Peer:
    def __init__(self, place):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(place.socket)
        self.socket.setblocking(False)

    def send(self, packet, fds=()):
        """False: the server has closed the connection, or reads no more."""
        try:
            socket.send_fds(self.socket, [packet], list(fds))
            return True
        except OSError:
            return False

    def receive(self, seconds=2):
        """The next packet; b"": closed; None: nothing came."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        try:
            return self.socket.recv(2048)
        except ConnectionError:
            return b""

    def is_closed(self, seconds=2):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.receive(max(0, end - time.monotonic())) == b"":
                return True
        return False

    def is_welcome(self):
        packet = self.receive()
        return bool(packet) and struct.unpack_from("=H", packet)[0] == WELCOME


def agent(place):
    peer = Peer(place)
    peer.segment, peer.bell = memfd(), eventfd()
    peer.send(hello(AGENT), [peer.segment, peer.bell])
    check(peer.is_welcome(), "a well-behaved agent is welcome")
    return peer


def server_holds(place):
    """Open descriptors and resident memory in KiB."""
    pid = place.server.pid
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return len(os.listdir(f"/proc/{pid}/fd")), int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Unharmed:
    """Checks around an attack: the held client stays held, the other makes progress, and the server leaks nothing."""

    def __init__(self, place):
        self.place = place
        # Else the address sanitizer keeps all memory that was freed, up to 256 MiB, and what is left would not be seen.
        place.sanitizers["ASAN_OPTIONS"] += ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
        place.start_server()

    def __enter__(self):
        self.low, self.high = held_client(self.place)
        self.begin, self.low_before, self.high_before = time.monotonic(), self.low.progress(), self.high.progress()
        self.held = server_holds(self.place)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            return
        time.sleep(max(0, self.begin + 0.5 - time.monotonic()))
        # Its commands take 1 ms each. On a busy machine, a software device is late each time.
        expected = (time.monotonic() - self.begin) * 1000
        ran = self.high.progress() - self.high_before
        check(ran >= expected * 0.2, f"the client that runs goes on: {ran} commands in {expected:.0f} ms")
        ran_while_held = self.low.progress() - self.low_before
        check(self.place.server.poll() is None, "the server is there")
        fds, _ = self.held
        wait_until(lambda: server_holds(self.place)[0] <= fds, lambda: f"no descriptor is left: {fds}, now {server_holds(self.place)}")
        check(server_holds(self.place)[1] <= self.held[1] + 4096, f"no memory is left: {self.held}, now {server_holds(self.place)}")
        moment = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3
        self.high.kill()
        wait_until(lambda: self.low.resumed_after(moment), "the held client goes on when the other ends", 2)
        said = self.low.end()
        if self.place.wide_bounds and set(said.splitlines()) == {TAKEN_FOR_HANGING}:
            return
        check(said == "", f"without a word, but it said: {said}")
        check(ran_while_held <= 2, f"the held client was held still, but it ran {ran_while_held} commands")


@test
@under("address")
def truncated_oversized_and_garbage_packets(place):
    good = hello(TOOL)
    garbage = random.Random(1)
    packets = [good[:size] for size in (1, 7, 8, 9, 40, len(good) - 1)]
    packets += [hello(TOOL, size) for size in (0, 7, len(good) - 1, len(good) + 1, 1 << 31, (1 << 32) - 1)]
    packets += [hello(role) for role in (0, 3, 1 << 31)]
    packets += [good + bytes(1025), message(HELLO, bytes(1017)), message(HELLO, bytes(60000))]
    packets += [message(kind) for kind in (0, PING, LIST, QUEUE_CREATED, 999, 65535)]
    packets += [garbage.randbytes(garbage.randrange(1, 1100)) for _ in range(300)]
    with Unharmed(place):
        for packet in packets:
            peer = Peer(place)
            peer.send(packet)
            check(peer.is_closed(), f"closed after {packet[:16].hex()}… of {len(packet)} bytes")
        peer = Peer(place)
        check(peer.send(good) and peer.is_welcome(), "who behaves is served")
        peer.socket.close()


@test
@under("address")
def descriptors_that_are_not_what_they_should_be(place):
    with Unharmed(place):
        end, other_end = os.pipe()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null, itself = os.open("/dev/null", os.O_RDWR), os.open("/proc/self/exe", os.O_RDONLY)
        bell, segment = eventfd(), memfd()
        bad_segments = [null, itself, end, bell, listener.fileno(), memfd(seals=0), memfd(4096), memfd(SEGMENT_SIZE * 2),
                        memfd(seals=0x0002), memfd(seals=SEALS | 0x0010)]
        cases = [[], [segment], [bell], [segment] * 2, [segment, bell, bell], [segment, bell] * 40]
        cases += [[bad, bell] for bad in bad_segments] + [[segment, bad] for bad in (null, itself, end, other_end)]
        for fds in cases:
            peer = Peer(place)
            peer.send(hello(AGENT), fds)
            check(peer.is_closed(), f"closed after descriptors {fds}")
        # After its hello, an agent has no more descriptors to send.
        peer = agent(place)
        peer.send(message(PING, bytes(8)), [bell])
        check(peer.is_closed(), "closed after a descriptor that nobody asked for")


@test
@under("thread")
def peers_that_come_and_go_without_a_word(place):
    with Unharmed(place):
        for i in range(1000):
            peer = Peer(place)
            if i % 3 == 1:
                peer.send(hello(TOOL))
            elif i % 3 == 2:
                peer.send(hello(AGENT), [memfd(), eventfd()] if i % 2 else [])
            peer.socket.close()


@test
def many_silent_peers_keep_nobody_waiting_and_are_dropped(place):
    with Unharmed(place):
        silent = [Peer(place) for _ in range(200)]
        begin = time.monotonic()
        newcomer = Client(place, 0, "task")
        wait_until(lambda: any(q["pid"] == newcomer.process.pid for q in place.queues()), "a newcomer is scheduled", 2)
        newcomer.kill()
        time.sleep(max(0, begin + 2 - time.monotonic()))
        late = silent.pop()
        check(late.send(hello(TOOL)) and late.is_welcome(), "who speaks late is welcome")
        check(all(peer.is_closed(8) for peer in silent), "who never speaks is dropped")
        check(time.monotonic() - begin < 9, "after a while")
        check(late.send(message(LIST)) and late.receive(), "and who spoke is not")
        late.socket.close()


@test
def peers_that_ask_and_never_read_are_dropped(place):
    with Unharmed(place):
        greedy = [Peer(place) for _ in range(50)]
        for peer in greedy:
            peer.send(hello(TOOL))
        agents = [agent(place) for _ in range(5)]
        closed = set()
        end = time.monotonic() + 8
        while len(closed) < len(greedy) + len(agents) and time.monotonic() < end:
            for peer in greedy + agents:
                for _ in range(100):
                    try:
                        peer.socket.send(message(LIST) if peer in greedy else message(PING, bytes(8)))
                    except BlockingIOError:
                        break
                    except OSError:
                        closed.add(peer)
                        break
            time.sleep(0.01)
        check(len(closed) == len(greedy) + len(agents), f"all are dropped: {len(closed)} of {len(greedy) + len(agents)}")
        for peer in greedy + agents:
            peer.socket.close()


@test
@under("address")
def an_agent_that_scribbles_over_its_segment_and_rings_without_end(place):
    with Unharmed(place):
        # On its own device: on the others' device, it could hold them legitimately.
        peer = agent(place)
        for index in range(8):
            check(peer.send(queue_created(index, 12345, 10)), "a queue of its own")
        noise = random.Random(2)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            os.pwrite(peer.segment, noise.randbytes(SEGMENT_SIZE), 0)
            for _ in range(100):
                os.eventfd_write(peer.bell, 1)
        check(peer.send(message(PING, bytes(8))), "it is connected still")
        queues = place.queues()
        check(len(queues) == 10, f"and all queues are listed: {len(queues)}")
        peer.socket.close()
        wait_until(lambda: len(place.queues()) == 2, "its queues go with it")


@test
def an_agent_that_claims_the_device_and_never_finishes_loses_its_claim(place):
    place.start_server()
    client = Client(place, 0, "continuous")
    wait_until(lambda: client.progress() > 20, "the client runs")
    peer = agent(place)
    peer.send(queue_created(0, place.queues()[0]["device_id"], 10))
    os.pwrite(peer.segment, struct.pack("=Q", 1 << 63), 4096 + 64)  # submitted
    os.pwrite(peer.segment, struct.pack("=Q", 1), 64)                # dirty
    os.eventfd_write(peer.bell, 1)

    def an_incident_is_counted():
        while peer.receive(0):  # it answers, but makes no progress
            pass
        return any(q["priority"] == 10 and q["incidents"] > 0 for q in place.queues())

    wait_until(an_incident_is_counted, "an incident is counted", 5)
    before = client.progress()
    time.sleep(0.5)
    check(client.progress() - before > 100, "the client runs beside it")


@test
@under("address")
def a_peer_that_is_killed_within_its_hello_leaves_nothing(place):
    with Unharmed(place):
        script = "import os, socket, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); " \
                 "s.connect(sys.argv[1]); s.send(bytes.fromhex(sys.argv[2])); print(flush=True); time.sleep(60)"
        for packet in (hello(TOOL), hello(TOOL)[:8]):
            peers = [subprocess.Popen(["python3", "-c", script, place.socket, packet.hex()], stdout=subprocess.PIPE)
                     for _ in range(4)]
            for peer in peers:
                peer.stdout.readline()
                peer.kill()
                peer.wait()


if __name__ == "__main__":
    main(__doc__)
