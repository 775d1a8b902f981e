#!/bin/bash
# Usage: test-rocm.sh [FOLDER]
# Runs the HIP tests over the newest ROCm that Debian has (sid: HIP 6.4), without a GPU: in FOLDER (build/rocm) it makes a
# chroot of Debian sid, builds XSched with its HIP tests and the software HSA agent in it, and runs them: there with AMD's
# rocBLAS, hipBLAS and MIOpen as well, and with rocBLAS's own test program. Needs mmdebstrap; as another user than root also
# newuidmap (uidmap) and subordinate ids (/etc/subuid).
# What is there already is used again: remove FOLDER to begin anew. Not a part of `make ci`: the first run downloads 600 MB.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(realpath -m "${1:-build/rocm}")
root=$folder/root
packages=(
  libamdhip64-6 libamdhip64-dev libhsa-runtime-dev
  librocblas4 librocblas-dev librocblas4-tests libhipblas2 libhipblas-dev libmiopen1 libmiopen-dev rocm-device-libs-21
  g++ cmake ninja-build ccache clang clang-tools lld llvm patchelf
  libgtest-dev libgmock-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libncurses-dev
  opencl-headers pkg-config python3
)

command -v mmdebstrap >/dev/null || { echo "test-rocm: needs mmdebstrap" >&2; exit 1; }

# The machine's own mirror of Debian.
mirror() {
  { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null || true
    echo http://deb.debian.org/debian; } | head -n 1
}

if [[ ${XSCHED_IN_NAMESPACE:-} != yes ]]; then
  if [[ ! -e $folder/made ]]; then
    mkdir -p "$folder"
    # Of rocBLAS's kernels, those for what the software agent says that it is. A mirror may be behind: what it has will do.
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
      --dpkgopt='path-exclude=/usr/lib/*/rocblas/*/library/*gfx*' \
      --dpkgopt='path-include=/usr/lib/*/rocblas/*/library/*gfx90a*' \
      sid "$root" "$(mirror)"
    touch "$folder/made"
  fi
  # What is mounted, and whatever still runs, goes with the process.
  namespaces=(--mount --propagation private --pid --fork --kill-child)
  ((EUID == 0)) || namespaces+=(--user --map-auto --setuid 0 --setgid 0)
  XSCHED_IN_NAMESPACE=yes exec unshare "${namespaces[@]}" "$0" "$folder"
fi

in_root() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    CCACHE_DIR=/ccache ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"
}
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mkdir -p "$root/xsched"
mount --bind "$PWD" "$root/xsched"

missing=()
for package in "${packages[@]}"; do
  [[ $(in_root dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if ((${#missing[@]} != 0)); then
  in_root apt-get update -q
  in_root apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

in_root cmake -S /xsched -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DXSCHED_OPENCL=OFF -DXSCHED_CUDA=OFF -DXSCHED_BENCH=OFF \
  >/dev/null
in_root cmake --build /build --parallel "${JOBS:-$(nproc)}" --target hip_tests standin_hsa_test xserver xsched
echo "== HIP tests over:"
in_root dpkg-query -W -f '${Package} ${Version}\n' libamdhip64-6 libamd-comgr\* librocblas4 libhipblas2 libmiopen1 clang 2>/dev/null |
  grep ' [0-9]'
in_root ctest --test-dir /build --output-on-failure -R '^(Hip|Hsa)'
