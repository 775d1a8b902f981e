#!/bin/bash
# Usage: fetch-prometheus.sh
# Puts Debian's prometheus and promtool into build/prometheus, for the tests of metrics: some 90 MB. It takes the two programs out of
# the package and installs nothing, because the package would start a service. If this fails, those tests are skipped, which is not an
# error.
set -euo pipefail
cd "$(dirname "$0")/.."

place=build/prometheus
if [[ -x $place/prometheus && -x $place/promtool ]] || { command -v prometheus && command -v promtool; } >/dev/null; then
  exit 0
fi

mkdir -p build
work=$(mktemp -d build/prometheus.XXXXXX)
trap 'rm -rf "$work"' EXIT
download() {
  (cd "$work" && apt-get download -q prometheus 2>/dev/null)
}
echo "fetching Debian's prometheus"
if ! download && ! { apt-get update -q && download; }; then
  echo "prometheus cannot be fetched: the tests that need it are skipped." >&2
  exit 0
fi
dpkg-deb --fsys-tarfile "$work"/prometheus_*.deb | tar -x -C "$work" ./usr/bin/prometheus ./usr/bin/promtool
rm -rf "$place"
# Atomically, so that an incomplete folder is never found.
mv "$work/usr/bin" "$place"
