"""AMD's installed headers, to check the registry against: no header is needed to build."""

from c_headers import HeaderReader
from registry import RegistryError

HEADERS = ("hip_runtime_api.h", "hip_ext.h", "hiprtc.h")
NOISE = r'__dparm|DEPRECATED|HIP_PUBLIC_API|__host__|inline|static|extern "C"'

# Types that are passed alike; of others the name decides.
ALIKE = {"unsigned int": "unsigned", "uint32_t": "unsigned", "int": "unsigned", "hipDevice_t": "unsigned",
         "uint64_t": "size_t", "unsigned long": "size_t", "unsigned long long": "size_t", "unsigned long long int": "size_t",
         "hipDeviceptr_t": "void*", "hipArray_t": "void*"}


def read_headers(directory):
    """name -> Function, of all functions that they declare."""
    reader = HeaderReader(r"hip\w+", NOISE)
    functions = {}
    for header in HEADERS:
        path = directory / header
        if path.exists():
            functions.update(reader.read(path.read_text(errors="replace"), header))
    if not functions:
        raise RegistryError(f"{directory}: no HIP headers")
    return functions


def _passed_as(type_name):
    words = [word for word in type_name.split() if word not in ("const", "struct", "enum")]
    plain = " ".join(words)
    plain = ALIKE.get(plain, plain)
    return "address" if plain.endswith(("*", "]")) else plain


def differing_signatures(functions, declared):
    """Sentences on the wrapped functions whose parameters are not those of the headers."""
    for name, exports in functions.items():
        for export in exports:
            parameters = export.function.parameters
            if name not in declared or not parameters:
                continue
            theirs = [_passed_as(p.type) for p in declared[name].parameters]
            ours = [_passed_as(p.type) for p in parameters]
            if ours != theirs:
                yield f"{export.symbol} takes ({', '.join(theirs)}), the registry says ({', '.join(ours)})"
