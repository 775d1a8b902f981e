#!/bin/bash
# Usage: test-reproducible.sh [archive | packages]…
# The same commit gives the same bytes: builds what is committed twice, and compares. The two clones are in folders whose names differ in
# length, are built with different settings of the user, and share no compiler's cache. archive: the archive and the wheel for this
# machine's processor; packages: the Debian and RPM packages; by default all that `make packages` makes. Takes as long as four builds. Where
# bytes differ, diffoscope says in what.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
kinds=("$@")
((${#kinds[@]} != 0)) || kinds=(all)

commit=$(git rev-parse HEAD)
folder=$top/build/reproducible
first=$folder/a
second=$folder/another/clone-with-a-longer-name

declare -A commands=([all]="make packages" [archive]="make archive wheel" [packages]="make system-packages")
declare -A results=([all]="archive wheel packages" [archive]="archive wheel" [packages]=packages)
for kind in "${kinds[@]}"; do
  [[ -n ${commands[$kind]:-} ]] || {
    sed -n '2,7s/^# \?//p' "$top/scripts/test-reproducible.sh" >&2
    exit 2
  }
done

# build_in CLONE KIND UMASK VARIABLE=VALUE…
build_in() {
  local clone=$1 kind=$2 mask=$3
  shift 3
  echo "== $kind in ${clone#"$folder"/}"
  # shellcheck disable=SC2016  # for the shell within
  env "$@" CCACHE_DIR="$clone/build/ccache" ZIG_GLOBAL_CACHE_DIR="$clone/build/zig-cache" ZIG_LOCAL_CACHE_DIR="$clone/build/zig-cache" bash -euc '
    umask "$1"
    [[ -d $2 ]] || git clone --quiet --no-hardlinks "$3" "$2"
    cd "$2"
    git checkout --quiet --detach "$4"
    exec $5' _ "$mask" "$clone" "$top" "$commit" "${commands[$kind]}" >"$folder/build.log" 2>&1 || {
    tail -n 40 "$folder/build.log" >&2
    exit 1
  }
}
# files_of RESULT: by their names in a clone. What says when and where a package was built (.buildinfo, and .changes with its checksum) differs.
files_of() {
  case $1 in
    archive) (cd "$first" && find build/portable-*/ -maxdepth 1 -name 'xsched-*-linux-*' -type f) ;;
    wheel) (cd "$first" && find build/portable-*/ -maxdepth 1 -name 'xsched-*.whl*' -type f) ;;
    packages) (cd "$first" && find build/packages -maxdepth 1 -name '*.deb' -o -maxdepth 1 -name '*.rpm' -o -maxdepth 1 -name '*.dsc' -o -maxdepth 1 -name '*.tar.xz') ;;
  esac | sort
}

# compare RESULT: adds the files that differ to $different.
compare() {
  local files file
  mapfile -t files < <(files_of "$1")
  ((${#files[@]} != 0)) || {
    echo "test-reproducible.sh: nothing was made of: $1" >&2
    exit 1
  }
  for file in "${files[@]}"; do
    if cmp "$first/$file" "$second/$file"; then
      echo "the same: $(basename "$file")"
    else
      different+=("$file")
      diffoscope --max-report-size 20000 --text - "$first/$file" "$second/$file" || true
    fi
  done
}

rm -rf "$folder"
mkdir -p "$folder"
different=()
for kind in "${kinds[@]}"; do
  build_in "$first" "$kind" 022 TZ=UTC LANG=C.UTF-8
  build_in "$second" "$kind" 077 TZ=Pacific/Auckland LANG=C USER=somebody
  for result in ${results[$kind]}; do
    compare "$result"
  done
done
if ((${#different[@]} != 0)); then
  echo "test-reproducible.sh: different bytes: ${different[*]}" >&2
  exit 1
fi
echo "== ${kinds[*]}: two builds, the same bytes"
