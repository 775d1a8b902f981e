#!/bin/bash
# Usage: run.sh BUILD
# docs/deploy/fleet.md, whose commands and configurations are taken from the page: metrics of two servers in a Prometheus of the site (CI runs
# these tests as well), and another machine, which is a container with systemd and OpenSSH's server. The load is OpenCL on the CPU (PoCL).
# BUILD: a build's folder. The machine needs root, podman, runc, mmdebstrap and Debian's mirror, so it is not part of CI.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../../.."
if ((EUID != 0)); then
  echo "run.sh: needs root, for a container in which systemd runs" >&2
  exit 1
fi
for program in podman runc mmdebstrap ssh ssh-keygen; do
  command -v "$program" >/dev/null || {
    echo "run.sh: $program is missing: scripts/install-deps.sh --deploy" >&2
    exit 1
  }
done
scripts/fetch-prometheus.sh
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^Fleet\.'
folder=$PWD/build/packages-test
mkdir -p "$folder"
# shellcheck source=tests/packages/systems.sh
. tests/packages/systems.sh
tests/deploy/fleet/machine.sh "$(base bookworm)" "$build"
