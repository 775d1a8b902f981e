"""Stand-ins of libraries that a program is linked to and does not use. Their functions return 0."""
import subprocess


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def undefined(library):
    """The names that it takes from others, and the version of each, or ""."""
    command = ["nm", "-D", "--undefined-only", "--format=just-symbols", str(library)]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return {name: version for name, _, version in (symbol.partition("@") for symbol in symbols)}


def version_script(functions):
    versions = sorted(set(functions.values()) - {""})
    return "".join(f"{version} {{ {' '.join(f'{name};' for name in functions if functions[name] == version)} }};\n" for version in versions)


def make_one(library, functions):
    script = library.with_suffix(".map")
    script.write_text(version_script(functions))
    versions = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    source = "".join(f"int {name}(void) {{ return 0; }}\n" for name in functions)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-xc", "-o", str(library), f"-Wl,-soname,{library.name}", *versions, "-"], input=source,
                   check=True, text=True)
    script.unlink()


def make(libraries, packages, place):
    """`libraries`: the name of each, and how the names of its functions begin, in small letters. Who uses them is in `packages`."""
    wanted = {}
    for file in packages.rglob("*.so*"):
        if file.is_file() and is_elf(file):
            wanted |= undefined(file)
    place.mkdir()
    for library, prefix in libraries.items():
        make_one(place / library, {name: version for name, version in sorted(wanted.items()) if name.lower().startswith(prefix)})
