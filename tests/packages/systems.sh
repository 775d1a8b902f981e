# Sourced by the scripts that test in clean systems, as root: small ones in $folder, made by mmdebstrap.

# The processor that the systems are for, by Debian's name.
arch=$(dpkg --print-architecture)

# for_machine MACHINE: the systems are for this processor (x86_64, aarch64). Programs of another one than this machine's run in qemu: the
# kernel is told so until this script ends, unless it knows already.
binfmt=/proc/sys/fs/binfmt_misc
for_machine() {
  local -A names=([x86_64]=amd64 [aarch64]=arm64)
  local name=qemu-$1
  arch=${names[$1]}
  [[ $1 != "$(uname -m)" ]] || return 0
  if ! mountpoint -q "$binfmt"; then
    mount -t binfmt_misc binfmt_misc "$binfmt"
    mounted=yes
  fi
  [[ ! -e $binfmt/$name ]] || return 0
  emulator=$binfmt/$name
  cat "/usr/lib/binfmt.d/$name.conf" >"$binfmt/register"
}
emulator=
mounted=
forget_emulator() {
  [[ -z $emulator ]] || echo -1 >"$emulator"
  [[ -z $mounted ]] || umount "$binfmt"
}

# base SUITE: an archive of a small system with PoCL. It is kept for the next time. A mirror that is no longer updated is good enough: what it
# has is signed, as ever.
base() {
  local archive=$folder/base-$1-$arch.tar new=$folder/new-$1-$arch.tar # mmdebstrap takes the format from the end of the name
  if [[ ! -s $archive ]]; then
    mmdebstrap --quiet --architectures="$arch" --aptopt='Acquire::Check-Valid-Until "false"' --variant=minbase \
      --include=pocl-opencl-icd,ocl-icd-libopencl1 "$1" "$new" >&2
    mv "$new" "$archive"
  fi
  echo "$archive"
}

# in_system ROOT command…: runs it as root in that folder, with processes of its own, all of which end with it.
in_system() {
  local root=$1
  shift
  # shellcheck disable=SC2016  # for the shell within
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/run"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
  ' _ "$root" "$@"
}

# new_system SUITE: a fresh one, at $root. As in containers, no service may be started.
root=
new_system() {
  remove_system
  root=$(mktemp -d "$folder/system.XXXXXX")
  tar -C "$root" -xf "$(base "$1")"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root" "$root/usr/sbin/policy-rc.d"
}
remove_system() { [[ -z $root ]] || rm -rf --one-file-system "$root"; }
trap 'remove_system; forget_emulator' EXIT
