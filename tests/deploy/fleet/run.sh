#!/bin/bash
# Usage: run.sh BUILD
# docs/deploy/fleet.md, whose commands and configurations are taken from the page: metrics of two servers in a Prometheus of the site (CI runs
# these tests as well), and another machine, which is a container with systemd and OpenSSH's server. The load is OpenCL on the CPU (PoCL).
# BUILD: a build's folder. The machine needs root, podman, runc, mmdebstrap and Debian's mirror, so it is not part of CI.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../../.."
# shellcheck source=tests/deploy/needs.sh
. tests/deploy/needs.sh
needs_root "a container in which systemd runs"
needs_programs --deploy podman runc mmdebstrap ssh ssh-keygen
scripts/fetch-prometheus.sh
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^Fleet\.'
tests/deploy/fleet/machine.sh "$(clean_system bookworm)" "$build"
