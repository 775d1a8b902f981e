#!/bin/bash
# Installs what building and testing XSched needs on Debian 12, if anything is missing. Asks no questions.
set -euo pipefail

packages=(
  # build
  build-essential cmake ninja-build ccache pkg-config
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libncurses-dev
  ocl-icd-opencl-dev opencl-headers
  python3 python3-mako
  # test
  libgtest-dev libgmock-dev libbenchmark-dev
  pocl-opencl-icd clinfo clpeak hashcat
  python3-pyopencl python3-pytest python3-numpy
  # format, tidy, fuzz
  clang clang-format clang-tidy libclang-rt-14-dev
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
