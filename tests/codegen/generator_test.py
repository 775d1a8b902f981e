#!/usr/bin/env python3
"""The generator of wrappers, with a platform of the test's own (the abacus), and what only one of the real platforms has."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT / "codegen"))
# pylint: disable=wrong-import-position
from c_headers import HeaderReader
from exports import Export
from instanced_shim import Hidden, InstancedShim
from platforms.cuda.headers import exports_in
from platforms.hip.checks import wrong_kinds
from platforms.hip.exports import name_of, read_exports, read_functions
from platforms.hip.headers import differing_signatures
from platforms.opencl.shim import OpenCLShim
from registry import Registry, RegistryError
from shim import Shim

HEADER = """
int beadPush(int bead, wire_t wire);
int beadCount(int* count);
void beadDrop(wire_t wire);
int beadWait(wire_t wire);
int beadReset(void);
int beadTurn(frame_t frame);
"""

KINDS = """
[kinds.push]
launch = true
scope = "Push"
takes = ["stream"]
gives = ["bead"]
[kinds.wait]
scope = "Wait"
takes = ["stream"]
otherwise = { scope = "Barrier" }
[kinds.reset]
scope = "Reset"
any_call = true
[kinds.drop]
scope = "Drop"
takes = ["stream"]
[kinds.query]
[roles]
stream = { names = ["wire"] }
bead = { names = ["bead"], else = "kNoBead" }
"""

REGISTRY = KINDS + """
[own]
calls = ["beadCount"]
[push]
beadPush = {}
[wait]
beadWait = {}
[reset]
beadReset = {}
[drop]
beadDrop = {}
[query]
beadCount = {}
beadTurn = {}
"""


class AbacusShim(Shim):
    platform = "abacus"
    title = "Abacus"
    abi_header = "hal/abacus/beads.h"
    scope_headers = ("commands",)
    success = "kFine"
    out_of_memory = "kFull"
    stream_type = "wire_t"
    header = HEADER
    types_known = {"int", "void", "wire_t", "frame_t"}

    def read(self):
        functions = HeaderReader(r"bead[A-Z]\w*", "NOTHING").read(self.header, "beads.h")
        return {name: [Export(function, name)] for name, function in functions.items()}

    def is_known_type(self, name):
        return name in self.types_known

    def call(self, export, _entry):
        return [f"Call call({self.index[export.name]});"]

    def missing(self, _function):
        return ["if (next == nullptr) return -1;"]

    def declarations(self):
        return "", "extern void* const kWrappers[kFunctionCount];\n"

    def tables(self):
        return "// none\n"


class InstancedAbacusShim(AbacusShim, InstancedShim):
    instances = 2
    max_instances = "kMaxFrames"
    hidden = (Hidden("Frame frame", "frames[kInstance]", "FrameOfCaller()"),)

    def tables(self):
        return "".join(f"{self.ways_in(export)}\n" for export, _ in self.wrapped)


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def registry(self, text):
        (self.folder / "functions.toml").write_text(text)
        return Registry(self.folder)

    def abacus(self, text=REGISTRY, kind=AbacusShim):
        return kind(self.registry(text), argparse.Namespace())


class ARegistry(InAFolder):
    def assert_refused(self, text, expected):
        with self.assertRaisesRegex(RegistryError, expected):
            self.registry(text)

    def test_that_says_what_nobody_reads_is_refused(self):
        self.assert_refused(KINDS + "[pull]\nbeadPull = {}", "kinds: not known: pull")
        self.assert_refused(KINDS + "[kinds.pull]\nscopes = 1", "kinds.pull: not known: scopes")
        self.assert_refused(KINDS + "[kinds.pull]\notherwise = { any_call = true }", "kinds.pull.otherwise: not known: any_call")
        self.assert_refused(KINDS + "[kinds.pull]\ntakes = ['thread']", "kinds.pull: roles: not known: thread")
        self.assert_refused(KINDS + "[push]\nbeadPush = { steam = '1' }", "beadPush: not known: steam")
        self.assert_refused(KINDS + "[push]\nbeadPush = { accounting = 'more' }", "beadPush: accounting: not known: more")
        self.assert_refused(KINDS + "[accounting.more]\ntakes = ['thread']", "accounting.more: roles: not known: thread")

    def test_that_has_a_function_twice_is_refused(self):
        self.assert_refused(KINDS + "[push]\nbeadPush = {}\n[query]\nbeadPush = {}", "beadPush is both push and query")


class AShim(InAFolder):
    def wrapper_of(self, name, text=REGISTRY, kind=AbacusShim):
        """The lines between its first one and the brace at the end."""
        written = self.abacus(text, kind).files()["wrappers.cc"]
        return written.split(f" {name}(", 1)[1].split("\n}\n", 1)[0].splitlines()[1:]

    def test_puts_the_programs_call_into_the_scope_of_its_kind(self):
        self.assertEqual(self.wrapper_of("beadPush"), [
            "  Call call(2);",
            "  auto next = call.next().beadPush;",
            "  if (next == nullptr) return -1;",
            "  if (!call.is_the_programs()) return next(bead, wire);",
            "  Push scope(call, ActualStream<false>(wire));",
            "  int result = next(bead, wire);",
            "  scope.Finish(result, bead);",
            "  return result;"])

    def test_has_another_scope_for_other_calls_where_the_kind_says_so(self):
        self.assertEqual(self.wrapper_of("beadWait")[3:8], [
            "  if (!call.is_the_programs()) {",
            "    Barrier scope(call);",
            "    int result = next(wire);",
            "    scope.Finish(result);",
            "    return result;"])

    def test_asks_nothing_where_the_scope_is_for_any_call(self):
        self.assertEqual(self.wrapper_of("beadReset")[3:], [
            "  Reset scope(call);", "  int result = next();", "  scope.Finish(result);", "  return result;"])

    def test_finishes_with_success_where_there_is_no_result(self):
        self.assertEqual(self.wrapper_of("beadDrop")[4:], [
            "  Drop scope(call, ActualStream<false>(wire));", "  next(wire);", "  scope.Finish(kFine);"])

    def test_uses_the_expression_that_a_function_says(self):
        said = REGISTRY.replace("beadPush = {}", 'beadPush = { bead = "bead + 1" }')
        self.assertIn("  scope.Finish(result, bead + 1);", self.wrapper_of("beadPush", said))

    def test_keeps_the_account_of_memory_around_the_kinds_scope(self):
        counted = REGISTRY.replace("beadPush = {}", "beadPush = { accounting = 'more' }") + """
[accounting.more]
scope = "More"
takes = ["bead"]
gives = ["stream"]
refuses = true
"""
        self.assertEqual(self.wrapper_of("beadPush", counted)[3:], [
            "  More account(call, bead);",
            "  if (account.refused()) [[unlikely]] return kFull;",
            "  const int answer = [&]() -> int {",
            "    if (!call.is_the_programs()) return next(bead, wire);",
            "    Push scope(call, ActualStream<false>(wire));",
            "    int result = next(bead, wire);",
            "    scope.Finish(result, bead);",
            "    return result;",
            "  }();",
            "  account.Finish(answer, ActualStream<false>(wire));",
            "  return answer;"])

    def test_wraps_a_function_that_changes_the_account_though_its_kind_has_no_scope(self):
        counted = REGISTRY.replace("beadTurn = {}", "beadTurn = { accounting = 'less' }") + "[accounting.less]\nscope = 'Less'\n"
        self.assertIn("  Less account(call);", self.wrapper_of("beadTurn", counted))

    def test_has_a_table_of_what_it_wraps_and_calls_in_alphabetical_order(self):
        files = self.abacus().files()
        self.assertEqual(sorted(files), ["coverage.txt", "functions.cc", "functions.h", "shimabacus.map", "wrappers.cc", "wrappers.h"])
        names = [line.strip(' ",') for line in files["functions.cc"].splitlines() if line.startswith("    ")]
        self.assertEqual(names, ["beadCount", "beadDrop", "beadPush", "beadReset", "beadWait"])
        self.assertIn("  DriverFunction<int (*)(int* count)> beadCount;\n", files["functions.h"])
        self.assertIn("kFunctionCount = 5;", files["functions.h"])

    def test_is_written_alike_each_time(self):
        self.assertEqual(self.abacus().files(), self.abacus().files())

    def test_with_instances_has_a_way_in_for_each_and_an_exported_one(self):
        self.assertEqual(self.wrapper_of("On_beadPush", kind=InstancedAbacusShim)[0], "  Call call(2);")
        written = self.abacus(kind=InstancedAbacusShim).files()["wrappers.cc"]
        self.assertIn("[[gnu::noinline]] int On_beadPush(int bead, wire_t wire, Frame frame) {", written)
        self.assertIn("static int beadPush(int bead, wire_t wire) {\n  return On_beadPush(bead, wire, frames[kInstance]);", written)
        self.assertIn("XSCHED_EXPORT int beadReset(void) {\n  return On_beadReset(FrameOfCaller());", written)
        self.assertIn("static_assert(kMaxFrames == 2);", written)
        self.assertEqual(written.count("reinterpret_cast<void*>(&Via<1>::beadPush)"), 1)
        self.assertNotIn("Via<2>", written)

    def test_refuses_a_function_whose_stream_nobody_looks_at(self):
        with self.assertRaisesRegex(RegistryError, "beadWait takes a stream: it can be no query"):
            self.abacus(REGISTRY.replace("[wait]\nbeadWait = {}\n", "").replace("beadTurn = {}", "beadTurn = {}\nbeadWait = {}"))

    def test_refuses_a_function_without_a_parameter_for_a_role(self):
        with self.assertRaisesRegex(RegistryError, "beadTurn is a drop, but which parameter is its stream?"):
            self.abacus(REGISTRY.replace("beadTurn = {}", "").replace("beadDrop = {}", "beadDrop = {}\nbeadTurn = {}")).files()

    def test_refuses_an_own_call_that_is_not_classified(self):
        with self.assertRaisesRegex(RegistryError, "own calls that are not classified: beadFind"):
            self.abacus(REGISTRY.replace('"beadCount"]', '"beadFind"]'))


class TheCoverage(InAFolder):
    def test_counts_and_names_what_is_not_classified_and_what_is_not_there(self):
        coverage = self.abacus(REGISTRY.replace("beadTurn = {}", "beadTurnAround = {}")).coverage
        self.assertEqual(coverage.report(), [
            "Abacus: 6 functions in the headers: 1 launch commands, 3 more are wrapped, 1 pass through, 1 unclassified",
            "  unclassified (they pass through): beadTurn",
            "  known, but not in the headers: beadTurnAround"])
        self.assertFalse(coverage.is_complete())
        self.assertTrue(self.abacus().coverage.is_complete())

    def test_names_what_cannot_be_wrapped_because_its_types_are_missing(self):
        class WithoutWires(AbacusShim):
            types_known = AbacusShim.types_known - {"wire_t"}
        coverage = self.abacus(kind=WithoutWires).coverage
        self.assertEqual([name for name, _ in coverage.wrapped], ["beadReset"])
        self.assertEqual(coverage.report()[-1], "  not wrapped, because their types are missing: beadDrop, beadPush, beadWait")
        self.assertFalse(coverage.is_complete())


class Cuda(unittest.TestCase):
    TYPES = "typedef int (*PFN_cuGo_v2000)(int a); typedef int (*PFN_cuGo_v3020)(long a); typedef int (*PFN_cuGo_v7000_ptds)(long a);"

    def test_gives_each_export_the_type_and_the_version_of_its_abi(self):
        exports = exports_in("extern int cuGo_v2(long a); extern int cuGo(int a); extern int cuGo_v2_ptds(long a);" + self.TYPES)
        self.assertEqual([(e.name, e.since, e.per_thread, e.type) for e in exports["cuGo"]], [
            ("cuGo", 2000, False, "PFN_cuGo_v2000"), ("cuGo_v2", 3020, False, "PFN_cuGo_v3020"),
            ("cuGo_v2_ptds", 7000, True, "PFN_cuGo_v7000_ptds")])

    def test_refuses_headers_with_more_types_than_exports(self):
        with self.assertRaisesRegex(RegistryError, "cuGo: 1 exports, but 2 types"):
            exports_in("extern int cuGo(int a); extern int cuGo_v2_ptds(long a);" + self.TYPES)


class Hip(InAFolder):
    REGISTRY = """
[kinds.launch]
scope = "Launch"
takes = ["stream"]
[kinds.query]
[roles]
stream = { names = ["stream"] }
[launch]
hipGo = { c = "int a, hipStream_t stream" }
"""

    def functions(self, text, *symbols):
        (self.folder / "exports-1.0.txt").write_text("# of a test\n" + "".join(f"{symbol} hip_1.0\n" for symbol in symbols))
        registry = self.registry(text)
        return registry, read_functions(registry, read_exports(self.folder))

    def test_lists_variants_and_cpp_names_under_the_functions_name(self):
        exports = {"hipGo": "", "hipGo_spt": "", "hipOnly_spt": ""}
        self.assertEqual(name_of("hipGo_spt", exports), "hipGo")
        self.assertEqual(name_of("hipOnly_spt", exports), "hipOnly_spt")
        self.assertEqual(name_of("_Z5hipGoP1aS_", exports), "hipGo")
        self.assertEqual(name_of("_ZN8hip_impl5hipGoEv", exports), "hipGo")

    def test_gives_each_export_the_parameters_of_the_registry(self):
        _, functions = self.functions(self.REGISTRY, "hipGo", "hipGo_spt")
        self.assertEqual([(e.symbol, e.per_thread, e.since) for e in functions["hipGo"]],
                         [("hipGo", False, "hip_1.0"), ("hipGo_spt", True, "hip_1.0")])
        self.assertEqual([p.name for p in functions["hipGo"][1].function.parameters], ["a", "stream"])

    def test_refuses_a_wrapped_function_without_parameters(self):
        with self.assertRaisesRegex(RegistryError, "hipGo is wrapped, but has no parameters"):
            self.functions(self.REGISTRY.replace('{ c = "int a, hipStream_t stream" }', "{}"), "hipGo")

    def test_finds_parameters_that_differ_from_the_headers(self):
        _, functions = self.functions(self.REGISTRY, "hipGo")
        reader = HeaderReader(r"hip\w+", "NOTHING")
        self.assertEqual(list(differing_signatures(functions, reader.read("int hipGo(unsigned a, hipStream_t s);", ""))), [])
        self.assertEqual(list(differing_signatures(functions, reader.read("int hipGo(void* a, hipStream_t s);", ""))),
                         ["hipGo takes (address, hipStream_t), the registry says (unsigned, hipStream_t)"])

    def test_finds_kinds_that_contradict_the_list_of_functions_with_streams(self):
        registry, functions = self.functions(self.REGISTRY, "hipGo")
        listed = self.folder / "stream_functions.txt"
        listed.write_text("[goes to a stream]: launch wait\nhipGo\n[tells of a stream]: query\nhipGo hipStop\n")
        self.assertEqual(list(wrong_kinds(registry, functions, listed)),
                         ["hipGo is launch, but tells of a stream", "hipStop is not known, but tells of a stream"])

    def test_fails_its_check_for_an_export_that_is_not_classified(self):
        for name, text in {"dispatch_table.txt": "", "stream_functions.txt": ""}.items():
            (self.folder / name).write_text(text)
        handles = "[handles]\ntypes = []\ncode = []\nnot_new = []\n"
        self.functions(self.REGISTRY + handles, "hipGo")
        check = [sys.executable, "-B", PROJECT / "codegen/wrappers.py", "hip", "--registry", self.folder, "--check"]
        self.assertEqual(subprocess.run(check, capture_output=True, check=False).returncode, 0)
        self.functions(self.REGISTRY + handles, "hipGo", "hipNew")
        failed = subprocess.run(check, capture_output=True, text=True, check=False)
        self.assertEqual((failed.returncode, "unclassified (they pass through): hipNew" in failed.stdout), (1, True), failed)


class OpenCL(InAFolder):
    REGISTRY = """
[kinds.launch]
launch = true
scope = "Launch"
takes = ["queue"]
[roles]
queue = { names = ["queue"] }
blocking = { names = ["blocking"], else = "CL_FALSE" }
event = { names = ["event"], else = "nullptr" }
[launch]
clEnqueueGo = {}
"""

    def shim(self, parameters):
        for name in ("cl_ext.h", "cl_gl.h", "cl_egl.h"):
            (self.folder / name).write_text("")
        (self.folder / "cl_platform.h").write_text("typedef int cl_int; typedef unsigned cl_bool;")
        (self.folder / "cl_icd.h").write_text("typedef struct _cl_icd_dispatch { clEnqueueGo_t* clEnqueueGo; } cl_icd_dispatch;")
        (self.folder / "cl.h").write_text("typedef void* cl_command_queue; typedef void* cl_event;\n"
                                          f"cl_int clEnqueueGo({parameters});")
        return OpenCLShim(self.registry(self.REGISTRY), argparse.Namespace(headers=self.folder))

    def test_refuses_a_launch_with_a_flag_or_an_event_that_nobody_looks_at(self):
        self.assertEqual(self.shim("cl_command_queue queue, cl_bool blocking, cl_event* event").functions[0].name, "clEnqueueGo")
        with self.assertRaisesRegex(RegistryError, "clEnqueueGo: what is cl_bool block?"):
            self.shim("cl_command_queue queue, cl_bool block")

    def test_exports_what_the_loaders_table_has(self):
        written = self.shim("cl_command_queue queue").files()["wrappers.cc"]
        self.assertIn("{offsetof(cl_icd_dispatch, clEnqueueGo), reinterpret_cast<void*>(&::clEnqueueGo), {", written)
        self.assertIn("XSCHED_EXPORT cl_int CL_API_CALL clEnqueueGo(cl_command_queue queue) {", written)


if __name__ == "__main__":
    unittest.main()
