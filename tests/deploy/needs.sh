# Sourced by the scripts of make test-deploy, in the project's folder.

# needs_root WHY
needs_root() {
  ((EUID != 0)) || return 0
  echo "${0##*/}: needs root, for $1" >&2
  exit 1
}

# needs_programs OPTIONS PROGRAM…: those that scripts/install-deps.sh installs with these options.
needs_programs() {
  local options=$1 program
  shift
  for program in "$@"; do
    command -v "$program" >/dev/null || {
      echo "${0##*/}: $program is missing: scripts/install-deps.sh $options" >&2
      exit 1
    }
  done
}

# clean_system SUITE: an archive of a clean system with PoCL.
clean_system() (
  set -e
  # shellcheck disable=SC2034  # for systems.sh
  folder=$PWD/build/packages-test
  mkdir -p "$folder"
  # shellcheck source=tests/packages/systems.sh
  . tests/packages/systems.sh
  base "$1"
)
