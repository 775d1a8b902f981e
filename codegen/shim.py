"""What the generator writes for a platform's shim. platforms/<platform>/shim.py derives a class from this one and says what differs.

    functions.h, functions.cc   the table of a runtime instance's functions, and their names
    wrappers.h, wrappers.cc     the wrappers, and the tables of them
    shim<platform>.map          what the shim exports
    coverage.txt                the report, which is printed as well
"""

import textwrap

from c_text import address, arguments, function_table, generated_by, name_table, pointer_type, signature, version_script
from coverage import Coverage
from registry import RegistryError
from roles import Roles
from scopes import Scopes


class Shim:
    # ---- what each platform says ----
    platform = ""  # its folder and its namespace
    title = ""
    abi_header = ""  # has the types of its functions
    scope_headers = ()  # of src/shim/<platform>: those that have the scopes
    success = ""  # what a successful call returns
    out_of_memory = ""  # what an allocation returns that the limit refuses
    stream_type = ""  # a function with such a parameter has a kind that knows its stream

    # ---- what some say ----
    command_line = {}  # option -> its properties, as argparse has them
    source = "the headers"  # what a function must be classified for being in
    holder = "one runtime instance"  # what the table of functions is of
    functions_struct = "Functions"
    outcome = "result"  # what a scope gets of a call's result
    call_convention = ""
    why_no_version = ""
    hidden_symbols = "_Z*;"  # that the C++ language makes visible

    def __init__(self, registry, options):
        self.registry, self.options = registry, options
        self.roles = Roles(registry)
        self.scopes = Scopes(registry, self.success, self.outcome, self.out_of_memory)
        self.coverage = Coverage(self.title, registry, self.read(), self.source, self.is_known_type)
        self.exports = self.coverage.functions
        self.wrapped = sorted(((export, entry) for name, entry in self.coverage.wrapped for export in self.exports[name]),
                              key=lambda pair: pair[0].symbol)
        self.functions = self._with_own([export for export, _ in self.wrapped])
        self.index = {export.name: i for i, export in enumerate(self.functions)}
        self.check_streams()

    # ---- what a platform implements ----

    def read(self):
        """Its functions, by the names under which the registry lists them: name -> [Export]."""
        raise NotImplementedError

    def is_known_type(self, _name):
        """A type that is not known cannot be in a wrapper."""
        return True

    def call(self, export, entry):
        """The lines at a wrapper's beginning: they make `call`."""
        raise NotImplementedError

    def missing(self, function):
        """The lines of a wrapper if the instance does not have its function: `next` is null."""
        raise NotImplementedError

    def around(self, _export, _entry):
        """Lines before the call, and on success after it."""
        return (), ()

    def declarations(self):
        """The tables of wrappers, as wrappers.h declares them; and the header for that, if any."""
        raise NotImplementedError

    def tables(self):
        """The tables of wrappers."""
        raise NotImplementedError

    def assertions(self):
        """For functions.cc: headers, and what the compiler is to check."""
        return "", ""

    def further_files(self):
        return {}

    def faults(self):
        """Sentences on what is wrong, beside what the coverage says."""
        return ()

    # ---- what all have ----

    def check_streams(self):
        """Fails for a function with a stream whose kind has no stream: it would be scheduled wrongly, and nobody would notice."""
        for name, entry in self.registry.entries.items():
            kind = self.registry.kinds[entry.kind]
            knows = kind.get("takes_streams", False) or "stream" in kind.get("takes", []) + kind.get("gives", [])
            for export in self.exports.get(name, []):
                if not knows and any(p.type == self.stream_type for p in export.function.parameters):
                    raise RegistryError(f"{export.name} takes a stream: it can be no {entry.kind}")

    def files(self):
        return {
            "functions.h": self.write_functions_h(),
            "functions.cc": self.write_functions_cc(),
            "wrappers.h": self.write_wrappers_h(),
            "wrappers.cc": self.write_wrappers_cc(),
            f"shim{self.platform}.map": self.write_map(),
            "coverage.txt": "\n".join(self.coverage.report()) + "\n",
            **self.further_files(),
        }

    def _with_own(self, exports):
        """With the functions that XSched itself calls, in alphabetical order."""
        every = {export.name: export for functions in self.exports.values() for export in functions}
        unknown = [name for name in self.registry.own_calls if not self.is_classified(name)]
        if unknown:
            raise RegistryError(f"own calls that are not classified: {', '.join(unknown)}")
        own = [every[name] for name in self.registry.own_calls if name in every]
        return sorted({export.name: export for export in [*exports, *own]}.values(), key=lambda export: export.symbol)

    def is_classified(self, name):
        return name in self.registry.entries

    # ---- files ----

    def write_functions_h(self):
        return function_table(self, [(export.type or pointer_type(export.function, self.call_convention), export.name)
                                     for export in self.functions])

    def types(self):
        """Declarations of types that the functions need, and the ABI's header does not have."""
        return ""

    def write_functions_cc(self):
        headers, checks = self.assertions()
        return f"""{generated_by(self.platform)}#include "{self.platform}/functions.h"
{headers}{checks}
{name_table(self.platform, [export.symbol for export in self.functions])}"""

    def write_wrappers_h(self):
        header, declarations = self.declarations()
        include = f'#include "{header}"\n' if header else ""
        return f"""{generated_by(self.platform)}#pragma once

#include "{self.platform}/functions.h"
{include}
namespace xsched::{self.platform} {{

{declarations}
}}  // namespace xsched::{self.platform}
"""

    def write_wrappers_cc(self):
        includes = "\n".join(f'#include "shim/{self.platform}/{header}.h"' for header in self.scope_headers)
        return f"""{generated_by(self.platform)}#include "{self.platform}/wrappers.h"

{includes}

{self.write_hidden_wrappers()}using namespace xsched::{self.platform};

#define XSCHED_EXPORT __attribute__((visibility("default")))

extern "C" {{

{self.write_exports()}
}}  // extern "C"

namespace xsched::{self.platform} {{

{self.tables()}
}}  // namespace xsched::{self.platform}
"""

    def write_hidden_wrappers(self):
        return ""

    def write_exports(self):
        return "\n".join(self.write_wrapper(f"XSCHED_EXPORT {self.declaration(export)}", export, entry)
                         for export, entry in self.wrapped)

    def declaration(self, export):
        function = export.function
        return f"{function.result} {self.call_convention}{export.name}({signature(function)})"

    def write_wrapper(self, declaration, export, entry):
        lines = [*self.call(export, entry),
                 f"auto next = call.next().{export.name};",
                 *self.missing(export.function),
                 *self.scopes.write(export, entry, f"next({arguments(export.function)})", *self.around(export, entry))]
        body = "\n".join("  " + line for line in lines)
        since = f", since {export.since}" if export.since else ""
        return f"""// {entry.kind}{since}
{declaration} {{
{body}
}}
"""

    def write_map(self):
        why = (f"The wrappers have no version{self.why_no_version}. All else is compiled hidden, but for what the C++ language makes "
               "visible. dlsym has the version under which programs look for it; the older one is in dl_hooks.map.")
        return version_script(textwrap.wrap(why, 120), self.hidden_symbols)


def exported_address(export):
    return address(f"::{export.name}")
