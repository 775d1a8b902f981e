#!/usr/bin/env python3
"""Records what a version's programs and tools send to its server, and what that answers: the bytes of every message.

  record.py --bin FOLDER --lib FOLDER > sessions_VERSION.txt     the folders of a build of that version

A proxy stands between them. A line is "agent > <hex>", "agent < <hex>", "tool > <hex>" or "tool < <hex>": what was sent to the
server, and what came from it. Each tool has a connection of its own, which begins with its hello.
"""
import argparse
import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

HELLO_ROLE = slice(12, 16)
TOOL = 2
QUIET_S = 0.3  # longer than an agent waits with anything


def pass_on(source, target, note):
    """False: the source's end is closed. `note` gets the packet before the target can answer it."""
    packet, fds, _, _ = socket.recv_fds(source, 2048, 4)
    if packet:
        note(packet)
        socket.send_fds(target, [packet], fds)
    for fd in fds:
        os.close(fd)
    return bool(packet)


class Proxy:
    def __init__(self, path, server):
        self.server = server
        self.lines = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.connect(self.server)
        name = None

        def note_hello(hello):
            nonlocal name
            name = "tool" if int.from_bytes(hello[HELLO_ROLE], sys.byteorder) == TOOL else "agent"
            self.lines.append(f"{name} > {hello.hex()}")

        pass_on(client, server, note_hello)
        for source, target, direction in ((client, server, ">"), (server, client, "<")):
            threading.Thread(target=self._copy, args=(source, target, f"{name} {direction}"), daemon=True).start()

    def _copy(self, source, target, prefix):
        while pass_on(source, target, lambda packet: self.lines.append(f"{prefix} {packet.hex()}")):
            pass
        target.shutdown(socket.SHUT_WR)


def be_an_agent(lib):
    """Two queues, and all that a program can tell the server about them."""
    preempt = ctypes.CDLL(lib / "libpreempt.so", mode=ctypes.RTLD_GLOBAL)
    soft = ctypes.CDLL(lib / "libhalsoft.so")
    queues = []
    for device in (1, 2):
        hwq, xqueue = ctypes.c_uint64(), ctypes.c_uint64()
        results = [soft.SoftQueueCreate(ctypes.byref(hwq), ctypes.c_uint32(device), 1),
                   preempt.XQueueCreate(ctypes.byref(xqueue), hwq, ctypes.c_int64(1), ctypes.c_int64(0))]
        queues.append(xqueue)
        time.sleep(QUIET_S)
    first, second = queues
    for call in (lambda: preempt.XHintPriority(first, -3),
                 lambda: preempt.XHintUtilization(first, 40),
                 lambda: preempt.XHintDeadline(first, ctypes.c_int64(20000)),
                 lambda: preempt.XHintLaxity(first, ctypes.c_int64(700), -4, 9),
                 lambda: preempt.XQueueSetLaunchConfig(first, ctypes.c_int64(12), ctypes.c_int64(6)),
                 lambda: preempt.XQueueSuspend(first, ctypes.c_int64(0)),
                 lambda: preempt.XQueueResume(first, ctypes.c_int64(0)),
                 lambda: preempt.XHintTimeslice(ctypes.c_int64(2500)),
                 lambda: preempt.XQueueDestroy(second)):
        results.append(call())
        time.sleep(QUIET_S)
    print(results, flush=True)
    sys.stdin.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--lib", type=pathlib.Path, required=True)
    parser.add_argument("--agent", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.agent:
        return be_an_agent(options.lib)
    with tempfile.TemporaryDirectory() as folder:
        server_path, proxy_path = f"{folder}/server", f"{folder}/proxy"
        server = subprocess.Popen([options.bin / "xserver", "--socket", server_path])
        while not os.path.exists(server_path):
            time.sleep(0.01)
        proxy = Proxy(proxy_path, server_path)
        environment = {**os.environ, "XSCHED_SOCKET": proxy_path, "XSCHED_SCHEDULER": "GLB"}
        agent = subprocess.Popen([sys.executable, "-B", __file__, "--agent", "--lib", options.lib], env=environment,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(f"agent: {agent.stdout.readline().strip()}", file=sys.stderr)
        for arguments in (["list"], ["hint", "--queue", "1", "--priority", "5"], ["policy", "set", "UP", "--timeslice-us", "3000"]):
            subprocess.run([options.bin / "xsched", *arguments], env=environment, check=True, stdout=sys.stderr)
        time.sleep(QUIET_S)
        agent.communicate("")
        server.terminate()
        server.wait()
        print("\n".join(proxy.lines))


if __name__ == "__main__":
    main()
