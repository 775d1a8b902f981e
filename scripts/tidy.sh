#!/bin/bash
# Usage: tidy.sh [-p BUILD] [-j JOBS] [-l SECONDS] [--changed] [FILE…]
# Runs clang-tidy on our sources, or on FILEs, with the flags of BUILD (build/release). Fails if it finds anything.
# The files that changed last come first. After SECONDS no further file is begun, and the remaining ones are counted.
# --changed: only files that differ from the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
jobs=2
seconds=
changed=
files=()
while (($# > 0)); do
  case $1 in
    -p) build=$2; shift ;;
    -j) jobs=$2; shift ;;
    -l) seconds=$2; shift ;;
    --changed) changed=1 ;;
    -*) sed -n '2,5s/^# \?//p' "$0" >&2; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done
if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is not installed: scripts/install-deps.sh --dev" >&2
  exit 2
fi
if [[ ! -e $build/compile_commands.json ]]; then
  echo "$build has no compile_commands.json: build first (make)" >&2
  exit 2
fi

database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
scripts/lint_database.py "$build" >"$database/compile_commands.json"
# Only files that BUILD compiles, because the flags of others are not known, for example of fuzzers and optional platforms.
compiled=$(sed -n "s|.*\"file\": \"$PWD/\(.*\.cc\)\".*|\1|p" "$database/compile_commands.json" |
  grep -E '^(src|bench|tests)/' | sort -u)
if ((${#files[@]} == 0)); then
  mapfile -t files < <(
    {
      git diff --name-only HEAD -- '*.cc'
      git ls-files --others --exclude-standard -- '*.cc'
      [[ -n $changed ]] || { git log --format= --name-only -- '*.cc'; echo "$compiled"; }
    } 2>/dev/null | grep -Fx "$compiled" | awk '!seen[$0]++'
  )
fi
((${#files[@]} > 0)) || exit 0

# Prints the findings of one file at a time. Only .clang-tidy decides what is an error, not -Werror of the build.
check() {
  if [[ -n $deadline ]] && (($(date +%s) >= deadline)); then
    echo "$1" >>"$left_out"
    return 0
  fi
  if ! found=$(clang-tidy --quiet --extra-arg=-Wno-error --extra-arg=-Wno-ignored-optimization-argument -p "$database" "$1" 2>/dev/null); then
    printf '%s\n' "$found"
    return 1
  fi
}
export -f check
left_out=$database/left_out
: >"$left_out"
deadline=${seconds:+$(($(date +%s) + seconds))}
export database left_out deadline

status=0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'check "$1"' check || status=1
skipped=$(wc -l <"$left_out")
echo "clang-tidy: $((${#files[@]} - skipped)) of ${#files[@]} files checked$([[ $status == 0 ]] || echo ', with findings')"
exit "$status"
