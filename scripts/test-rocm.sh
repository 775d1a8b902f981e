#!/bin/bash
# Usage: test-rocm.sh [FOLDER]
# Runs the HIP tests over all runtimes that are available, without a GPU, and real programs (tests/rocm_programs):
#   here             this system's (Debian 12: HIP 5.2)
#   in two chroots   Debian sid's (HIP 6.4), with rocBLAS, hipBLAS, MIOpen, rocBLAS's own test program and llama.cpp; those of Debian
#                    experimental (HIP 7.2), with hipBLASLt and RCCL as well
#   everywhere       AMD's own builds of 7.0.0, 7.2.4 and 7.14.0 (fetch-hip-runtime.py), and two of these runtimes in one process
# The builds, the chroots and the programs are in FOLDER (build/rocm). PYTHON is used here: Triton and some programs need 3.12. LARGE=1
# runs the large programs, too. Needs mmdebstrap; for users other than root also newuidmap (uidmap) and subordinate ids (/etc/subuid).
# It uses an existing FOLDER again; remove it to begin anew. Not a part of `make ci`, because the first run downloads 3 GB.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(realpath -m "${1:-build/rocm}")
python=$(command -v "${PYTHON:-python3}")
jobs=${JOBS:-$(nproc)}
tools=(
  g++ cmake ninja-build ccache clang clang-tools lld llvm patchelf
  libgtest-dev libgmock-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libncurses-dev
  opencl-headers pkg-config python3 python3-dev binutils
)
libraries=(libamdhip64-dev libhsa-runtime-dev librocblas-dev libhipblas-dev libmiopen-dev)
# Of each chroot.
declare -A packages=(
  [sid]="${libraries[*]} libamdhip64-6 librocblas4-tests rocm-device-libs-21 libggml0-backend-hip llama.cpp-tools python3-gguf"
  [experimental]="${libraries[*]} libamdhip64-7 librocblas5-tests rocm-device-libs-22 libhipblaslt1 librccl1"
)
declare -A programs=([sid]="llama_completion" [experimental]="hipblaslt_matmul rccl_all_reduce")
options=(
  -G Ninja -DCMAKE_BUILD_TYPE=Release -DXSCHED_OPENCL=OFF -DXSCHED_CUDA=OFF -DXSCHED_BENCH=OFF
  "-DXSCHED_HIP_RUNTIMES=7.0.0;7.2.4;7.14.0"
)
targets=(hip_tests standin_hsa_test standin_amdgpu_test shimhip xserver xsched)
tests='^(Hip|Hsa|Amdgpu)'

command -v mmdebstrap >/dev/null || { echo "test-rocm: needs mmdebstrap" >&2; exit 1; }

# The Debian mirror that this machine uses. (sed reads all lines. With head, writing the rest could fail, and end the script.)
mirror() {
  { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null || true
    echo http://deb.debian.org/debian; } | sed -n 1p
}

test_here() {
  scripts/fetch-hip-runtime.py
  scripts/fetch-hip-runtime.py triton
  cmake -S . -B "$folder/here" "${options[@]}" "-DPython3_EXECUTABLE=$python" >/dev/null
  cmake --build "$folder/here" --parallel "$jobs" --target "${targets[@]}"
  echo "== HIP tests over:"
  dpkg-query -W -f '${Package} ${Version}\n' libamdhip64-5 2>/dev/null || true
  ctest --test-dir "$folder/here" --output-on-failure --parallel "$(nproc)" -R "$tests"
  echo "== programs:"
  "$python" -B tests/rocm_programs/run.py --build "$folder/here" --packages "$folder/programs" ${LARGE:+--large}
}

# make_root SUITE. Only the kernels for the software agent's architecture. An outdated mirror is accepted.
make_root() {
  [[ ! -e $folder/$1.made ]] || return 0
  mkdir -p "$folder"
  local suite sources=()
  for suite in sid experimental; do
    sources+=("deb $(mirror) $suite main")
    [[ $suite != "$1" ]] || break
  done
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt='path-exclude=/usr/lib/*/rocblas/*gfx*' --dpkgopt='path-include=/usr/lib/*/rocblas/*gfx90a*' \
    --dpkgopt='path-exclude=/usr/lib/*/hipblaslt/*gfx*' --dpkgopt='path-include=/usr/lib/*/hipblaslt/*gfx90a*' \
    sid "$folder/$1" "${sources[@]}"
  touch "$folder/$1.made"
}

# in_root SUITE COMMAND…
in_root() {
  chroot "$folder/$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    CCACHE_DIR=/ccache ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "${@:2}"
}

# install SUITE RELEASE PACKAGE…: those that are missing.
install() {
  local package missing=()
  for package in "${@:3}"; do
    [[ $(in_root "$1" dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]} != 0)) || return 0
  in_root "$1" apt-get update -q
  in_root "$1" apt-get install -q -y --no-install-recommends -t "$2" "${missing[@]}"
}

# test_in SUITE, in a namespace of its own.
test_in() {
  local root=$folder/$1
  mount --rbind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  mkdir -p "$root/xsched"
  mount --bind "$PWD" "$root/xsched"
  # shellcheck disable=SC2086
  install "$1" "$1" ${packages[$1]}
  install "$1" sid "${tools[@]}"
  in_root "$1" cmake -S /xsched -B /build "${options[@]}" >/dev/null
  in_root "$1" cmake --build /build --parallel "$jobs" --target "${targets[@]}"
  echo "== HIP tests over:"
  in_root "$1" dpkg-query -W -f '${Package} ${Version}\n' 'libamdhip64-?' 'libamd-comgr*' 'librocblas?' 'libhipblas?' libmiopen1 clang |
    grep ' [0-9]'
  in_root "$1" ctest --test-dir /build --output-on-failure --parallel "$(nproc)" -R "$tests"
  echo "== programs:"
  # shellcheck disable=SC2086
  in_root "$1" python3 -B /xsched/tests/rocm_programs/run.py --build /build --packages /programs ${programs[$1]}
}

if [[ -n ${XSCHED_TEST_IN:-} ]]; then
  test_in "$XSCHED_TEST_IN"
  exit
fi
test_here
# Mounts and remaining processes end with the namespace.
namespaces=(--mount --propagation private --pid --fork --kill-child)
((EUID == 0)) || namespaces+=(--user --map-auto --setuid 0 --setgid 0)
for suite in sid experimental; do
  make_root "$suite"
  XSCHED_TEST_IN=$suite unshare "${namespaces[@]}" "$0" "$folder"
done
