#!/bin/bash
# Usage: fetch-perfetto.sh
# Puts Perfetto's own definition of its format into build/perfetto, with the parser that it needs, for the tests of timelines: Python
# packages from PyPI, 2 MB. Both are pure Python, so it does not matter which Python and which processor the tests run on. If this fails,
# those tests are skipped, which is not an error.
set -euo pipefail
cd "$(dirname "$0")/.."

perfetto=0.59.1
protobuf=6.33.6
place=build/perfetto
if [[ -d $place/perfetto-$perfetto.dist-info && -d $place/protobuf-$protobuf.dist-info ]]; then
  exit 0
fi

mkdir -p build
work=$(mktemp -d build/perfetto.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching Perfetto's format (perfetto==$perfetto protobuf==$protobuf)"
# perfetto depends on any version of protobuf.
if ! python3 -m pip install --quiet --root-user-action ignore --disable-pip-version-check --retries 1 --timeout 20 --no-deps --no-compile \
  --only-binary :all: --platform any --target "$work/all" "perfetto==$perfetto" "protobuf==$protobuf"; then
  echo "Perfetto's format cannot be fetched: the tests that need it are skipped." >&2
  exit 0
fi
rm -rf "$place"
# Atomically, so that an incomplete folder is never found.
mv "$work/all" "$place"
