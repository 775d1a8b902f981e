#!/usr/bin/env python3
"""The bill of materials beside an archive or wheel (scripts/sbom.py) is valid SPDX 2.3, and says what is in it.

  sbom_test.py FILE
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
REQUIRED = {
    "document": {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "files", "relationships"},
    "package": {"SPDXID", "name", "downloadLocation"},
    "file": {"SPDXID", "fileName", "checksums"},
    "relationship": {"spdxElementId", "relationshipType", "relatedSpdxElement"},
}


def contents(path):
    """{name: SHA-256} of its files, read here by another way than in sbom.py."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            assert wheel.testzip() is None
            return {f"./{info.filename}": hashlib.sha256(wheel.read(info)).hexdigest() for info in wheel.infolist() if not info.is_dir()}
    found = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.isreg():
                found[f"./{member.name}"] = hashlib.sha256(archive.extractfile(member).read()).hexdigest()
    return found


def check_valid(bill):
    def has(what, thing):
        missing = REQUIRED[what] - thing.keys()
        assert not missing, f"{what} {thing.get('SPDXID')} lacks {missing}"

    has("document", bill)
    assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0" and bill["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"https://[^#\s]+", bill["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", bill["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Person|Organization): ", who) for who in bill["creationInfo"]["creators"])
    for package in bill["packages"]:
        has("package", package)
        assert package["versionInfo"], f"{package['name']} has no version"
        assert package["filesAnalyzed"] == ("packageVerificationCode" in package)
    for file in bill["files"]:
        has("file", file)
        assert {sum["algorithm"] for sum in file["checksums"]} >= {"SHA1"}, "SPDX wants it of each file"
    ids = [thing["SPDXID"] for thing in [bill, *bill["packages"], *bill["files"]]]
    assert len(ids) == len(set(ids)) and all(map(ID.fullmatch, ids))
    for relation in bill["relationships"]:
        has("relationship", relation)
        assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= set(ids), relation
    assert [relation for relation in bill["relationships"] if relation["relationshipType"] == "DESCRIBES"]


def check_true(path, bill):
    def sum_of(thing, kind):
        return next(sum["checksumValue"] for sum in thing["checksums"] if sum["algorithm"] == kind)

    packed = next(package for package in bill["packages"] if package["name"] == "xsched")
    assert sum_of(packed, "SHA256") == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {file["fileName"]: sum_of(file, "SHA256") for file in bill["files"]} == contents(path)
    code = hashlib.sha1("".join(sorted(sum_of(file, "SHA1") for file in bill["files"])).encode()).hexdigest()
    assert packed["packageVerificationCode"]["packageVerificationCodeValue"] == code
    licenses = {name.rpartition("/")[2] for name in contents(path) if "/share/doc/licenses/" in name}
    assert licenses <= {package["name"] for package in bill["packages"]}, "each that is in the programs is named"


def main():
    path = pathlib.Path(sys.argv[1])
    bill = json.loads(path.with_name(path.name + ".spdx.json").read_text())
    check_valid(bill)
    check_true(path, bill)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", path.name + ".sha256"], cwd=path.parent, check=True)


main()
