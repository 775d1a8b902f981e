# Sourced by the scripts that test in containers of Podman: a $name of the script's own for what it makes, and a folder, $work.

name=xsched-test-$$
work=$(mktemp -d)
# Not more descriptors and processes than this machine allows; runc, because crun refuses hybrid cgroups.
# shellcheck disable=SC2034  # for the scripts
limits=(--ulimit nofile=1024:1024 --ulimit nproc=4096:4096)
podman() { command podman --runtime runc "$@"; }

# A script with further containers defines it again.
clean() {
  podman rm --force --time 1 --volumes "$name" &>/dev/null || true
  podman rmi --force "$name" "$name-base" &>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
