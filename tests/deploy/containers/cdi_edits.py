#!/usr/bin/env python3
"""Applies devices of CDI specifications to an OCI configuration, as an engine does: for runtimes that are used without one.

  cdi_edits.py CONFIG.json SPECIFICATION.json:DEVICE…
"""
import json
import pathlib
import sys


def apply(config, edits):
    """The latest value of a variable and the latest mount of a place count, as with engines."""
    for entry in edits.get("env", []):
        name = entry.split("=")[0]
        config["process"]["env"] = [old for old in config["process"].get("env", []) if old.split("=")[0] != name] + [entry]
    for mount in edits.get("mounts", []):
        config["mounts"] = [old for old in config["mounts"] if old["destination"] != mount["containerPath"]] + [
            {"source": mount["hostPath"], "destination": mount["containerPath"], "options": mount["options"]}]


def add_device(config, specification, name):
    device = next((device for device in specification["devices"] if device["name"] == name), None)
    if device is None:
        sys.exit(f"{specification['kind']} has no device {name}")
    apply(config, specification["containerEdits"])
    apply(config, device["containerEdits"])


def main(path, *devices):
    file = pathlib.Path(path)
    config = json.loads(file.read_text(encoding="utf-8"))
    for device in devices:
        specification, name = device.rsplit(":", 1)
        add_device(config, json.loads(pathlib.Path(specification).read_text(encoding="utf-8")), name)
    file.write_text(json.dumps(config, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
