#!/bin/bash
# Usage: run.sh BUILD [TEST…]
# A cluster of Ray on this machine, of three nodes, whose workers are run by XSched's plugin. The load is OpenCL on the CPU (PoCL). BUILD: a
# build's folder. Ray comes from PyPI, into build/ray; that is why this is not a part of CI (400 MB).
set -euo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")/../../.."
ray=build/ray
if [[ ! -x $ray/bin/ray ]]; then
  python3 -m venv "$ray"
  "$ray/bin/pip" install --quiet "ray[serve]==2.60.0"
fi
exec "$ray/bin/python" -B tests/deploy/ray/ray_cluster.py --bin "$build/bin" --lib "$build/lib" "$@"
