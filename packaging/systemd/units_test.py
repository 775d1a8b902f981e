#!/usr/bin/env python3
"""The settings of systemd's units on which the promises of docs/design.md, "Liveness", or those about who may use the HTTP interface
depend, and why."""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
SYSTEM, USER = "xserver.service.in", "xserver-user.service.in"
HTTP, HTTP_SOCKET = "xserver-http.service.in", "xserver-http.socket"
METRICS, METRICS_SOCKET = "xserver-metrics.service.in", "xserver-metrics.socket"
TMPFILES = "xsched.tmpfiles"
BOTH = (SYSTEM, USER)

WANTED = [
    (BOTH, "Service", "Type", lambda value: value == "notify",
     "systemd counts the server as started when it listens, and hears from it that it lives"),
    (BOTH, "Service", "WatchdogSec", lambda value: 1 <= float(value or 0) <= 10,
     "a server that hangs is replaced soon; its clients leave it after 230 ms. Not at once: a loaded machine is late"),
    (BOTH, "Service", "Restart", lambda value: value == "on-failure", "a server that cannot go on comes back (memory, threads, a crash)"),
    (BOTH, "Unit", "StartLimitIntervalSec", lambda value: value == "0",
     "it comes back however often it ends. By default systemd gives up after five times in ten seconds"),
    (BOTH, "Service", "RestartPreventExitStatus", lambda value: value == "3",
     "3: another server listens there. Starting again and again would not help"),
    ((HTTP, METRICS), "Service", "User", lambda value: value == setting(SYSTEM, "Service", "User"),
     "the server lets its own user change the queues of all users and the policy, for those who may"),
    ((HTTP_SOCKET, METRICS_SOCKET), "Socket", "IPAddressDeny", lambda value: value == "any", "nobody but this machine reaches it"),
    ((HTTP_SOCKET, METRICS_SOCKET), "Socket", "IPAddressAllow", lambda value: value == "localhost", "this machine does"),
    ((HTTP_SOCKET, METRICS_SOCKET), "Socket", "ListenStream", lambda value: value.startswith("127.0.0.1:"), "nobody but this machine reaches it"),
    ((HTTP, METRICS), "Service", "RestrictAddressFamilies", lambda value: value == "AF_UNIX",
     "it listens at a socket that systemd has made, and asks the server through a Unix socket"),
    ((HTTP, METRICS), "Service", "PrivateNetwork", lambda value: value in (None, "no"), "its clients are on the machine's network"),
    ((HTTP, METRICS), "Service", "PrivateUsers", lambda value: value in (None, "no"), "it must tell users apart, by /proc/self/net/tcp"),
    ((METRICS,), "Service", "Environment", lambda value: value == "METRICS_GROUP= METRICS_OPTIONS=", "nobody sees all users until an administrator says so"),
    ((HTTP,), "Unit", "Requires", lambda value: value == HTTP_SOCKET, "it listens at nothing else"),
    ((METRICS,), "Unit", "Requires", lambda value: value == METRICS_SOCKET, "it listens at nothing else"),
    ((SYSTEM,), "Service", "ConfigurationDirectory", lambda value: value == "xsched",
     "the folder of /etc/xsched/xserver.json. Made by an administrator whose umask is 077, it locks the server's user out"),
    ((SYSTEM,), "Service", "RuntimeDirectory", lambda value: value == "xsched", "the folder of SystemServerSocket"),
    ((SYSTEM,), "Service", "RuntimeDirectoryPreserve", lambda value: value in ("yes", "restart"),
     "containers have the folder mounted. A new one after a restart would be another folder"),
]


def settings(file):
    """{(section, name): value}; a name that is there twice is a fault."""
    found, section = {}, ""
    for line in (FOLDER / file).read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            # A second filter of system calls takes some of them away again.
            if (section, name) in found and value and name != "SystemCallFilter":
                sys.exit(f"{file}: {name} is set twice")
            found[section, name] = value
    return found


def setting(file, section, name):
    return settings(file).get((section, name))


def main():
    faults = []
    for files, section, name, fits, why in WANTED:
        for file in files:
            value = setting(file, section, name)
            if not fits(value):
                faults.append(f"{file}: [{section}] {name}={value}: {why}")
    # Containers have the folder mounted: without it they do not start. Its owner and mode are those that the server gives it.
    folder = [f"/run/{setting(SYSTEM, 'Service', 'RuntimeDirectory')}", setting(SYSTEM, "Service", "RuntimeDirectoryMode"),
              setting(SYSTEM, "Service", "User"), setting(SYSTEM, "Service", "Group")]
    made = [line.split() for line in (FOLDER / TMPFILES).read_text().splitlines() if not line.startswith("#")]
    if made != [["d", *folder, "-"]]:
        faults.append(f"{TMPFILES}: the machine's start does not make {' '.join(folder)}, whether a server starts or not")
    if faults:
        sys.exit("\n".join(faults))


main()
