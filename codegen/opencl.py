#!/usr/bin/env python3
"""Generates the OpenCL shim's plain part from registry/opencl.txt and the installed headers.

  opencl.py --registry FILE --headers DIR --out DIR    writes wrappers.h, functions.h, exports.map, coverage.txt
  opencl.py --registry FILE --headers DIR --check      exits 1 if a function of the headers is not classified
"""
import argparse
import pathlib
import re
import sys

WRAPPED = ["launch", "finish", "create-queue", "retain-queue", "release-queue", "lookup"]
PASSED = ["wait", "flush", "query", "event", "object", "build"]
HEADERS = ["cl.h", "cl_gl.h", "cl_gl_ext.h", "cl_egl.h", "cl_ext.h", "cl_ext_intel.h",
           "cl_va_api_media_sharing_intel.h"]


# Headers that need another library's headers: their functions are wrapped where those are installed.
NEEDS = {"cl_va_api_media_sharing_intel.h": "va/va.h"}


class Function:
    def __init__(self, name, result, parameters, header):
        self.name, self.result, self.parameters, self.header = name, result, parameters, header

    def named(self, test):
        return next((p for p in self.parameters if test(p)), None)

    @property
    def queue(self):
        """The C++ expression of the queue that the function works on."""
        one = self.named(lambda p: p.type == "cl_command_queue")
        if one:
            return one.name
        # Command buffers: several queues, or none given (then those it was recorded for, which are not known here).
        for count, queues in zip(self.parameters, self.parameters[1:]):
            if re.fullmatch(r"cl_command_queue ?\*", queues.type):
                return f"{count.name} > 0 ? {queues.name}[0] : nullptr"
        return None

    @property
    def blocking(self):
        return self.named(lambda p: p.type == "cl_bool" and p.name.startswith("blocking"))

    @property
    def waits(self):
        """The (count, list) pair of the events that the command waits for."""
        for count, events in zip(self.parameters, self.parameters[1:]):
            if count.type == "cl_uint" and re.fullmatch(r"const cl_event ?\*", events.type):
                return count, events
        return None


class Parameter:
    def __init__(self, text):
        text = " ".join(text.split())
        self.text = text
        callback = re.search(r"\(\s*(?:CL_CALLBACK)?\s*\*\s*(\w+)\s*\)", text)
        if callback:
            self.name, self.type = callback.group(1), "callback"
            return
        match = re.fullmatch(r"(.*?)(\w+)\s*((?:\[\w*\])?)", text)
        self.name, self.type = match.group(2), (match.group(1) + ("*" if match.group(3) else "")).strip()


def split_parameters(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    parts.append(current)
    parts = [p.strip() for p in parts]
    return [] if parts in ([""], ["void"]) else [Parameter(p) for p in parts]


def closing(text, start):
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced parentheses")


def read_headers(folder):
    functions = {}
    for header in HEADERS:
        path = pathlib.Path(folder) / "CL" / header
        if not path.exists():
            continue
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(errors="replace"), flags=re.S)
        text = re.sub(r"//[^\n]*", " ", text)
        for match in re.finditer(r"extern\s+(?:CL_API_ENTRY\s+)?([\w\s\*]*?)\s*CL_API_CALL\s+(cl\w+)\s*\(", text):
            end = closing(text, match.end() - 1)
            result = re.sub(r"CL_API_ENTRY|CL_API_PREFIX\w*|CL_EXT_PREFIX\w*", "", match.group(1))
            result = re.sub(r"CL_\w*DEPRECATED\w*", "", result)
            function = Function(match.group(2), " ".join(result.split()), split_parameters(text[match.end():end]), header)
            functions.setdefault(function.name, function)
    return functions


def read_registry(path):
    kinds = {}
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] not in WRAPPED + PASSED:
            sys.exit(f"{path}:{number}: {words[0]} is not a kind")
        for name in words[1:]:
            if name in kinds:
                sys.exit(f"{path}:{number}: {name} is listed twice")
            kinds[name] = words[0]
    return kinds


def dispatch_members(folder):
    text = (pathlib.Path(folder) / "CL" / "cl_icd.h").read_text()
    body = text[text.index("typedef struct _cl_icd_dispatch"):]
    return set(re.findall(r"(?:cl_api_)?\w+\s+\*?(cl\w+);", body))


def constant(name):
    return "k" + name[0].upper() + name[1:]


def signature(function, name):
    parameters = ", ".join(p.text for p in function.parameters) or "void"
    return f"{function.result} CL_API_CALL {name}({parameters})"


def success(function):
    return "result != nullptr" if function.result.endswith("*") else "result == CL_SUCCESS"


def wrapper(function, kind):
    arguments = ", ".join(p.name for p in function.parameters)
    lines = ["template <int kInstance>", signature(function, f"Wrap_{function.name}") + " {",
             f"  const auto next = Next<decltype(&{function.name})>({constant(function.name)}, kInstance);",
             f"  if (preempt::InsideXSched()) return next({arguments});"]
    if kind == "launch":
        waits = ", ".join(p.name for p in function.waits) if function.waits else "0, nullptr"
        blocking = function.blocking.name if function.blocking else "CL_FALSE"
        lines += [f"  LaunchCall call({function.queue}, {waits});",
                  f"  {function.result} result = next({arguments});",
                  f"  call.Finish({success(function)}, {blocking});",
                  "  return result;"]
    elif kind == "finish":
        lines += [f"  FinishCall call({function.queue});",
                  f"  {function.result} result = next({arguments});",
                  "  call.Finish(result == CL_SUCCESS);",
                  "  return result;"]
    elif kind == "create-queue":
        lines += [f"  {function.result} result = next({arguments});",
                  f"  if (result != nullptr) QueueCreated(result, DriverOf({constant(function.name)}, kInstance));",
                  "  return result;"]
    elif kind == "retain-queue":
        lines += [f"  {function.result} result = next({arguments});",
                  f"  if (result == CL_SUCCESS) QueueRetained({function.queue});",
                  "  return result;"]
    elif kind == "release-queue":
        lines += [f"  QueueReleased({function.queue});",
                  f"  return next({arguments});"]
    elif kind == "lookup":
        name = function.parameters[-1].name
        lines += [f"  return LookedUp({name}, next({arguments}), DriverOf({constant(function.name)}, kInstance));"]
    return "\n".join(lines + ["}"])


def exported(function):
    arguments = ", ".join(p.name for p in function.parameters)
    # The headers' own declaration gives the linkage.
    return (signature(function, function.name) + " {\n"
            f"  const auto wrapper = Exported<decltype(&{function.name})>({constant(function.name)});\n"
            f"  if (wrapper != nullptr) return wrapper({arguments});\n"
            f"  return Missing<{function.result}>(\"{function.name}\");\n"
            "}")


def generate(functions, kinds, folder, out):
    members = dispatch_members(folder)
    usable = [f for f in functions.values()
              if f.header not in NEEDS or (pathlib.Path(folder) / NEEDS[f.header]).exists()]
    wrapped = [f for f in usable if kinds.get(f.name) in WRAPPED]
    core = [f for f in wrapped if f.name in members]
    out.mkdir(parents=True, exist_ok=True)
    note = "// Generated by codegen/opencl.py from registry/opencl.txt and the installed headers.\n"

    text = note + "#pragma once\n\nnamespace xsched::opencl {\n\nenum FunctionId : int {\n"
    text += "".join(f"  {constant(f.name)},\n" for f in wrapped)
    text += "  kFunctionCount\n};\n\ninline constexpr const char* kFunctionNames[] = {\n"
    text += "".join(f'    "{f.name}",\n' for f in wrapped) + "};\n\n}  // namespace xsched::opencl\n"
    (out / "functions.h").write_text(text)

    text = note + "#pragma once\n\nnamespace xsched::opencl {\n\n"
    text += "\n\n".join(wrapper(f, kinds[f.name]) for f in wrapped)
    text += "\n\n// [function][instance]\nconstexpr void* (*kThunks[])(int) = {\n"
    text += "".join(f"    Thunk<Wrappers_{f.name}>,\n" for f in wrapped) + "};\n"
    before = "".join(
        f"struct Wrappers_{f.name} {{\n  template <int kInstance>\n  static void* Get() {{\n"
        f"    return reinterpret_cast<void*>(&Wrap_{f.name}<kInstance>);\n  }}\n}};\n" for f in wrapped)
    text = text.replace("// [function][instance]", before + "\n// [function](instance)")
    text += "\n// Replaces the entries of a loader's dispatch table that are wrapped.\n"
    text += "void WrapDispatch(cl_icd_dispatch& table, const OclDriver* driver) {\n"
    for f in core:
        text += f"  WrapEntry(table.{f.name}, {constant(f.name)}, driver);\n"
    text += "}\n\n}  // namespace xsched::opencl\n\n"
    text += "using namespace xsched::opencl;\n\n"
    text += "\n\n".join(exported(f) for f in core) + "\n"
    (out / "wrappers.h").write_text(text)

    names = "".join(f"    {f.name};\n" for f in core)
    (out / "exports.map").write_text(
        "XSCHED_OPENCL {\n  global:\n    clGetLayerInfo;\n    clInitLayer;\n" + names + "  local: *;\n};\n"
        "/* Programs ask for dlsym by its version. */\n"
        "GLIBC_2.2.5 {\n  global: dlsym;\n};\nGLIBC_2.34 {\n  global: dlsym;\n} GLIBC_2.2.5;\n")


def coverage(functions, kinds):
    counts = {kind: sum(kinds.get(name) == kind for name in functions) for kind in WRAPPED + PASSED}
    missing = sorted(name for name in functions if name not in kinds)
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return f"OpenCL: {len(functions)} functions in the installed headers: {parts}; {len(missing)} unclassified", missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", required=True)
    parser.add_argument("--headers", required=True, help="the folder that holds CL/")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    functions, kinds = read_headers(options.headers), read_registry(options.registry)
    if not functions:
        sys.exit(f"no OpenCL functions found in {options.headers}/CL")
    summary, missing = coverage(functions, kinds)
    print(summary)
    for name in missing:
        print(f"  unclassified, passes through unscheduled: {name}")
    broken = [n for n, k in kinds.items() if k == "launch" and n in functions and functions[n].queue is None]
    if broken:
        sys.exit("launches without a queue: " + " ".join(broken))
    if options.out:
        generate(functions, kinds, options.headers, options.out)
    if options.check and missing:
        sys.exit("classify them in registry/opencl.txt")


if __name__ == "__main__":
    main()
