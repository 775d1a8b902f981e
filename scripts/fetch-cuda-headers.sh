#!/bin/bash
# Usage: fetch-cuda-headers.sh
# If there are no headers of CUDA's driver API (src/platforms/cuda/FindCudaHeaders.cmake lists the places), downloads them from PyPI into
# build/cuda-headers: some 3 MB. With them the CUDA platform is built and tested, with or without a GPU. If this fails, XSched is
# built without CUDA, which is not an error.
set -euo pipefail
cd "$(dirname "$0")/.."

# cuda.h and cudaTypedefs.h; cudaProfiler.h, for the tests.
packages=('nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-profiler-api==13.0.*')
place=build/cuda-headers

if cmake -DCudaHeaders_FIND_REQUIRED=1 -P src/platforms/cuda/FindCudaHeaders.cmake &>/dev/null; then
  exit 0
fi

mkdir -p build
work=$(mktemp -d build/cuda-headers.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching CUDA's headers (${packages[*]})"
if ! python3 -m pip download -q --disable-pip-version-check --retries 1 --timeout 20 --no-deps --only-binary :all: \
  --dest "$work" "${packages[@]}"; then
  echo "CUDA's headers cannot be fetched: XSched is built without CUDA. To have it, install a CUDA toolkit and set CUDA_HOME." >&2
  exit 0
fi
for package in "$work"/*.whl; do
  python3 -m zipfile -e "$package" "$work/all"
done
rm -rf "$place"
mkdir "$place"
# Atomically, so that an incomplete folder is never found.
mv "$work"/all/nvidia/cu13/include "$place"
