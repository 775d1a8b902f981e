#!/bin/bash
# Usage: packages.sh [--version VERSION] [--without-cuda] [--deb | --rpm] [FOLDER]
# Makes packages for Debian (with what this system has, so for this release of it) and RPM packages, with their sources, of what
# is committed, in FOLDER (build/packages). The same commit gives the same bytes on each machine with the same compiler and libraries.
#   --version       in place of the version in CMakeLists.txt, to which a commit without the tag of a release adds its time
#   --without-cuda  where CUDA's headers are not to be had (fetch-cuda-headers.sh)
#   --deb, --rpm    only these
set -euo pipefail
cd "$(dirname "$0")/.."

version=
kinds=(deb rpm)
deb_profile=()
rpm_options=()
folder=build/packages
while (($#)); do
  case $1 in
    --version)
      version=$2
      shift
      ;;
    --without-cuda)
      deb_profile=(-Ppkg.xsched.nocuda)
      rpm_options=(--without cuda)
      ;;
    --deb | --rpm) kinds=("${1#--}") ;;
    -*)
      sed -n '2,7s/^# \?//p' "$0" >&2
      exit 2
      ;;
    *) folder=$1 ;;
  esac
  shift
done

# The time of the packages, and of each file in them that was made now.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# LANG: as rpm sets it. ccache goes by it, and so both kinds of packages share what is compiled.
export SOURCE_DATE_EPOCH TZ=UTC LANG=C LC_ALL=C.UTF-8
# A cache of its own: debhelper changes HOME, where the user's would be, and with the user's settings the debug information could differ.
export CCACHE_DIR=${CCACHE_DIR:-$PWD/build/packages-ccache}
umask 022
if [[ -z $version ]]; then
  version=$(sed -n 's/^project(XSched VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  if ! git describe --exact-match --match "v$version" HEAD &>/dev/null; then
    version+=+git$(date --date="@$SOURCE_DATE_EPOCH" +%Y%m%d.%H%M%S)
  fi
fi
if [[ -n $(git status --porcelain --untracked-files=no) ]]; then
  echo "packages.sh: the packages have what is committed, without the changes since" >&2
fi
if ((${#deb_profile[@]} == 0)); then
  scripts/fetch-cuda-headers.sh
  # The packages are built elsewhere. Headers in the usual places are found from there.
  [[ ! -d build/cuda-headers ]] || export CUDA_HOME=$PWD/build/cuda-headers
fi

mkdir -p "$folder"
folder=$(realpath "$folder")
# Both kinds are built in $work/xsched/build, whatever the version is: ccache then knows what it has compiled there before. It stays if
# the build fails.
work=$folder/work
rm -rf "$work"
mkdir "$work"

# make_deb: Debian's packages, in $work.
make_deb() {
  local revision
  # So that the packages of a newer release of the system are newer.
  # shellcheck disable=SC1091  # it is everywhere
  revision=1~$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
  git archive --format=tar --prefix=xsched/ HEAD | xz -T1 >"$work/xsched_$version.orig.tar.xz"
  tar -C "$work" -xf "$work/xsched_$version.orig.tar.xz"
  cp -r "$work/xsched/packaging/debian" "$work/xsched/debian"
  cat >"$work/xsched/debian/changelog" <<END
xsched ($version-$revision) unstable; urgency=medium

  * Built from commit $(git rev-parse --short=12 HEAD). CHANGELOG.md says what is new.

 -- $(sed -n 's/^Maintainer: //p' packaging/debian/control)  $(date --date="@$SOURCE_DATE_EPOCH" --rfc-email)
END
  (cd "$work/xsched" && dpkg-buildpackage --no-sign -j"$(nproc)" "${deb_profile[@]}")
}

# make_rpm: RPM packages, in $work.
make_rpm() {
  # In RPM, ^ marks what comes after a release.
  local rpm_version=${version/+/^}
  git archive --format=tar --prefix=xsched/ HEAD | xz -T1 >"$work/xsched-$rpm_version.tar.xz"
  # Rebuilt elsewhere, where nobody gives the version, the source package has to know it.
  sed "s/^%{!?xsched_version: .*/%global xsched_version $rpm_version/" packaging/rpm/xsched.spec >"$work/xsched.spec"
  # Other systems have other names for what the build needs: no dependencies here.
  rpmbuild -ba --nodeps "${rpm_options[@]}" --define "_topdir $work/rpmbuild" --define "_builddir $work" \
    --define "_sourcedir $work" --define "_rpmdir $work" --define "_srcrpmdir $work" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
    --define "_buildhost reproducible" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "source_date_epoch_from_changelog 0" "$work/xsched.spec"
  rm "$work"/xsched{"-$rpm_version.tar.xz",.spec}
}

for kind in "${kinds[@]}"; do
  "make_$kind" >"$folder/$kind.log" 2>&1 || {
    tail -n 40 "$folder/$kind.log" >&2
    echo "packages.sh: no packages ($folder/$kind.log)" >&2
    exit 1
  }
done
rm -f "$folder"/*.{deb,rpm,dsc,changes,buildinfo,tar.xz}
find "$work" -maxdepth 1 -type f -exec mv -t "$folder" {} +
rm -rf "$work"
find "$folder" -maxdepth 1 -name '*.deb' -o -maxdepth 1 -name '*.rpm' | sort
