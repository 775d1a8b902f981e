#!/bin/bash
# Usage: install-deps.sh [--runtime | --dev | --packages | --deploy]
# Installs missing Debian 12 packages that XSched needs. Asks no questions.
#   --runtime  for an installed XSched, with PoCL (OpenCL on the CPU) and the programs of the demo
#   --dev      for building and testing, which includes --runtime, CUDA's headers (fetch-cuda-headers.sh), Prometheus
#              (fetch-prometheus.sh), Perfetto's format (fetch-perfetto.sh), Kubernetes' schemas (fetch-kubernetes-schemas.sh) and
#              one of AMD's own HIP runtimes (fetch-hip-runtime.py)
#   --packages for making and testing packages (docs/install.md), which includes what the build of them needs
#   --deploy   for the ways to place programs on machines (make test-deploy)
#   (none)     --runtime and --dev
set -euo pipefail

runtime=(
  libfmt9 libspdlog1.10 libncurses6 libmicrohttpd12
  ocl-icd-libopencl1 pocl-opencl-icd clinfo clpeak hashcat
)
dev=(
  # build
  build-essential cmake ninja-build ccache pkg-config git
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libncurses-dev libmicrohttpd-dev
  ocl-icd-opencl-dev opencl-headers
  python3
  # test
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  pocl-opencl-icd clinfo clpeak hashcat
  python3-pyopencl python3-pytest python3-numpy python3-pip mypy
  python3-setuptools python3-wheel python3-venv
  musl
  systemd
  # test HIP: AMD's runtime, and compiling for it
  libamdhip64-dev libhsa-runtime-dev clang clang-tools lld patchelf
  # build for AArch64, and test that in an emulator
  g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user googletest mmdebstrap
  # check the model of the protocol
  spin
  # the plugin for Slurm, and jobs of a real Slurm
  libslurm-dev slurmctld slurmd slurm-client
  # the agent for Kubernetes
  libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc libcurl4-openssl-dev openssl
  # format, tidy, fuzz
  clang clang-format clang-tidy libclang-rt-14-dev llvm
)
packages=(
  build-essential cmake git ninja-build pkg-config python3 python3-pip
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libncurses-dev libmicrohttpd-dev
  ocl-icd-opencl-dev opencl-headers systemd
  debhelper dh-python rpm cpio
  lintian mmdebstrap podman runc diffoscope
  # systems for AArch64, in an emulator
  qemu-user-static arch-test
)
deploy=(
  mmdebstrap podman runc uidmap openssh-client
  slurmctld slurmd slurm-client slurmdbd mariadb-server-core mariadb-client-core
  python3-venv openssl
)
# Packages of others have the same file.
command -v kubectl >/dev/null || deploy+=(kubernetes-client)

case ${1:-} in
  --runtime) wanted=("${runtime[@]}") ;;
  --dev) wanted=("${dev[@]}") ;;
  --packages) wanted=("${packages[@]}") ;;
  --deploy) wanted=("${deploy[@]}") ;;
  "") wanted=("${runtime[@]}" "${dev[@]}") ;;
  *)
    sed -n '2,10s/^# \?//p' "$0" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian or Ubuntu (no apt-get). Please install what these packages of Debian 12 contain:" >&2
  echo "  ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed || " ${missing[*]} " == *" $package "* ]] || missing+=("$package")
done

if ((${#missing[@]} != 0)); then
  as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Neither root nor sudo: please let an administrator run" >&2
      echo "  apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

if [[ ${1:-} == --dev || -z ${1:-} ]]; then
  "$(dirname "$0")/fetch-cuda-headers.sh"
  "$(dirname "$0")/fetch-prometheus.sh"
  "$(dirname "$0")/fetch-perfetto.sh"
  "$(dirname "$0")/fetch-kubernetes-schemas.sh"
  if [[ $(uname -m) == x86_64 ]] && ! "$(dirname "$0")/fetch-hip-runtime.py" 7.2.4; then
    echo "AMD's own HIP runtime cannot be fetched: the HIP tests run over the distribution's alone." >&2
  fi
fi
