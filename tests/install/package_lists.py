#!/usr/bin/env python3
"""Checks that each file that is installed belongs to exactly one Debian package and exactly one RPM package, and that each line of
their lists matches a file.

  package_lists.py BUILD LIBDIR PACKAGING     LIBDIR: where BUILD installs libraries (lib, lib64, lib/<architecture>)
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

LIB = "LIB"  # the folder of the libraries, whatever its name is
# What %install of the spec moves or takes away.
MOVED_BY_SPEC = {"share/xsched/python/xsched": "PYTHON/xsched", "share/xsched/python": None, "share/doc/XSched": None}
MACROS = {
    "_bindir": "bin", "_libdir": LIB, "_libexecdir": "libexec", "_includedir": "include", "_datadir": "share", "_mandir": "share/man",
    "_unitdir": "lib/systemd/system", "_userunitdir": "lib/systemd/user", "_sysusersdir": "lib/sysusers.d",
    "_tmpfilesdir": "lib/tmpfiles.d", "python3_sitelib": "PYTHON",
}


def installed(build, libdir):
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        names = [str(path.relative_to(prefix)) for path in pathlib.Path(prefix).rglob("*") if path.is_symlink() or not path.is_dir()]
    return [re.sub(rf"^{re.escape(libdir)}/(?=lib[^/]*\.so|cmake/|pkgconfig/)", f"{LIB}/", name) for name in names]


def debian(folder):
    """(package, pattern) of debian/*.install, and of what is in no package."""
    for file in [*sorted(folder.glob("*.install")), folder / "not-installed"]:
        for line in file.read_text(encoding="utf-8").splitlines():
            pattern = line.split()[0].removeprefix("usr/")
            yield file.name, re.sub(r"^lib/\*/", f"{LIB}/", pattern)


def spec(file):
    """(%files line, pattern) of a spec."""
    section = None
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("%files"):
            section = line
        elif section and line.startswith("%{"):
            pattern = re.sub(r"%\{(\w+)\}", lambda found: MACROS[found[1]], line)
            yield section, re.sub(r"(?<=\.\d)\*$", "", pattern)  # compressed or not


def after_spec(names):
    for name in names:
        for before, now in MOVED_BY_SPEC.items():
            if name.startswith(before + "/"):
                name = now and now + name.removeprefix(before)
                break
        if name:
            yield name


def matches(pattern, name):
    """True if the pattern is the file's path or that of a folder that it is in."""
    words, parts = pattern.split("/"), name.split("/")
    return len(words) <= len(parts) and all(fnmatch.fnmatchcase(part, word) for part, word in zip(parts, words))


def faults(kind, names, lists):
    lists = list(lists)
    for name in sorted(names):
        owners = sorted({owner for owner, pattern in lists if matches(pattern, name)})
        if len(owners) != 1:
            yield f"{kind}: {name} is in {' and '.join(owners) or 'no package'}"
    for owner, pattern in lists:
        if not any(matches(pattern, name) for name in names):
            yield f"{kind}: {owner}: there is no {pattern}"


def main():
    build, libdir, packaging = sys.argv[1:]
    packaging = pathlib.Path(packaging)
    names = installed(build, libdir)
    found = [*faults("Debian", names, debian(packaging / "debian")),
             *faults("RPM", list(after_spec(names)), spec(packaging / "rpm/xsched.spec"))]
    print("\n".join(found) or f"each of {len(names)} files is in one package")
    sys.exit(1 if found else 0)


main()
