#!/usr/bin/env python3
"""Says what is in an archive or wheel of XSched (archive.sh, wheel.sh), and how to recognize it. Beside FILE it writes

  FILE.spdx.json   the bill of materials, in SPDX 2.3: each file with its checksums, and what the programs have in them of others
  FILE.sha256      for `sha256sum --check`, of both

  sbom.py FILE --version VERSION [--sysroot FOLDER]

What others' code is in the programs is known by the licenses in share/doc/licenses, of which each is named after a package of Debian.
SYSROOT: where these packages were taken from. The same file gives the same bytes.
"""
import argparse
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import zipfile

NAMESPACE = "https://spdx.org/spdxdocs"
# By Debian's packages. A license is the one that the code in the programs is under.
LICENSES = {
    "libfmt-dev": "MIT",
    "libspdlog-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "nlohmann-json3-dev": "MIT",
    "libtomlplusplus-dev": "MIT",
    "libtinfo6": "X11-distribute-modifications-variant",
    "libmicrohttpd-dev": "LGPL-2.1-or-later",
}
LICENSE_FILE = re.compile(r".*/share/doc/licenses/([a-z0-9][a-z0-9+.-]+)")


def files_in(path):
    """[(name, bytes)] of its files. Links are not files."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return [(name, wheel.read(name)) for name in sorted(wheel.namelist()) if not name.endswith("/")]
    with tarfile.open(path) as archive:
        return sorted((member.name, archive.extractfile(member).read()) for member in archive if member.isfile())


def version_of(package, sysroot):
    """As Debian's changelog in the package says it."""
    changelogs = sorted((sysroot / "usr/share/doc" / package).glob("changelog*.gz"), key=lambda path: "Debian" not in path.name)
    for changelog in changelogs:
        with gzip.open(changelog, "rt", errors="replace") as text:
            if found := re.match(r"\S+ \(([^)]+)\)", text.readline()):
                return found[1]
    sys.exit(f"sbom.py: {sysroot} does not say which version of {package} it has")


def checksums(data, *kinds):
    return [{"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), data).hexdigest()} for kind in kinds]


def file_entry(number, name, data):
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": f"./{name}",
        "checksums": checksums(data, "SHA1", "SHA256"),
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def verification_code(entries):
    """Of SPDX 2.3, 7.9: of all files, the SHA-1 of their sorted SHA-1s."""
    sums = sorted(entry["checksums"][0]["checksumValue"] for entry in entries)
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def component(package, sysroot):
    if package not in LICENSES:
        sys.exit(f"sbom.py: the license of {package} is not known here")
    version = version_of(package, sysroot)
    return {
        "SPDXID": f"SPDXRef-Package-{re.sub('[^A-Za-z0-9.-]', '-', package)}",
        "name": package,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": LICENSES[package],
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package}@{version.replace('+', '%2B').replace(':', '%3A')}"}],
    }  # fmt: skip


def runtime(sysroot):
    """What the compiler of cmake/portable.cmake adds to each program: zig, beside the packages' folder (portable-toolchain.sh)."""
    zig = sysroot.parent / "zig"
    found = re.search(r"zig-([0-9.]+)/", os.readlink(zig)) if zig.is_symlink() else None
    if not found:
        return []
    return [{
        "SPDXID": "SPDXRef-Package-ziglang",
        "name": "ziglang",
        "versionInfo": found[1],
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "MIT AND Apache-2.0 WITH LLVM-exception",
        "copyrightText": "NOASSERTION",
        "comment": "libc++, libc++abi, libunwind and compiler-rt, as the compiler brings them",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:pypi/ziglang@{found[1]}"}],
    }]  # fmt: skip


def commit_time():
    """Of what is packed: the same bytes on each day."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    said = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(said.stdout) if said.returncode == 0 else int(time.time())


def document(path, version, sysroot):
    data, files = path.read_bytes(), files_in(path)
    entries = [file_entry(number, name, content) for number, (name, content) in enumerate(files, 1)]
    packed = {
        "SPDXID": "SPDXRef-Package-xsched",
        "name": "xsched",
        "versionInfo": version,
        "packageFileName": path.name,
        "supplier": "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "checksums": checksums(data, "SHA256"),
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": verification_code(entries)},
        "licenseInfoFromFiles": ["NOASSERTION"],
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }
    others = [component(found[1], sysroot) for name, _ in files if (found := LICENSE_FILE.fullmatch(name))]
    others += runtime(sysroot) if others else []
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", packed["SPDXID"])]
    relations += [(packed["SPDXID"], "CONTAINS", entry["SPDXID"]) for entry in entries]
    relations += [(packed["SPDXID"], "STATIC_LINK", other["SPDXID"]) for other in others]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": path.name,
        "documentNamespace": f"{NAMESPACE}/{path.name}-{hashlib.sha256(data).hexdigest()}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit_time())), "creators": ["Tool: xsched-sbom.py"]},
        "packages": [packed, *others],
        "files": entries,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--sysroot", type=pathlib.Path, default=pathlib.Path("/"))
    options = parser.parse_args()
    bill = options.file.with_name(options.file.name + ".spdx.json")
    bill.write_text(json.dumps(document(options.file, options.version, options.sysroot), indent=1) + "\n")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (options.file, bill)]
    options.file.with_name(options.file.name + ".sha256").write_text("".join(sums))
    print(bill)


if __name__ == "__main__":
    main()
