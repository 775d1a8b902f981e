#!/usr/bin/env python3
"""The description of the messages: its faults are found, what is made of it compiles, and it is true of 2.0's messages.

  description_test.py [TEST…] COMPILER     COMPILER: of C++
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT / "codegen"))
from message_description import DESCRIPTION, Description, DescriptionError  # pylint: disable=wrong-import-position

RECORDING = PROJECT / "tests/compatibility/sessions_2.0.txt"
MINOR_OF_2_0 = 1

SMALLEST = """
[protocol]
major = 1
max_message = 64
introduction = "What it is for."
sessions = "Who says what."
[minors]
1 = "one"
2 = "two"
[enums]
[constants]
[structs.Header]
fields = [{ name = "type", type = "MessageType" }, { name = "reserved", type = "u16" }, { name = "size", type = "u32" }]
[messages.First]
number = 1
direction = "here → there"
fields = [{ name = "count", type = "u64" }]
"""


def recorded_packets():
    for line in RECORDING.read_text().splitlines():
        if not line.startswith("#"):
            yield bytes.fromhex(line.split()[2])


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / "messages.toml"
        path.write_text(text)
        return path


class Faults(InAFolder):
    def assert_fault(self, text, expected):
        with self.assertRaisesRegex(DescriptionError, expected):
            Description(self.write(SMALLEST + text))

    def second(self, fields, number=2, extra=""):
        return f'[messages.Second]\nnumber = {number}\ndirection = "here → there"\n{extra}\nfields = [{fields}]\n'

    def test_the_smallest_description_has_none(self):
        self.assertEqual(Description(self.write(SMALLEST)).message("First").size, 16)

    def test_a_hole_before_a_field(self):
        self.assert_fault(self.second('{ name = "small", type = "u32" }, { name = "large", type = "u64" }'),
                          "Second.large begins at 12: put 4 reserved bytes before it")

    def test_a_hole_at_the_end(self):
        self.assert_fault(self.second('{ name = "large", type = "u64" }, { name = "small", type = "u16" }'),
                          "Second ends at 18: append 6 reserved bytes")

    def test_a_field_that_is_not_appended(self):
        self.assert_fault(self.second('{ name = "new", type = "u64", since = 2 }, { name = "old", type = "u64", since = 1 }'),
                          "Second.old is older than new")

    def test_a_field_of_a_version_that_is_not_there(self):
        self.assert_fault(self.second('{ name = "new", type = "u64", since = 3 }'), "Second is newer than the newest minor version")

    def test_a_number_that_is_taken(self):
        self.assert_fault(self.second("", number=1), "First and Second are both number 1")

    def test_a_name_that_is_taken(self):
        self.assert_fault(self.second('{ name = "one", type = "u64" }, { name = "one", type = "u64" }'), "two fields one")

    def test_a_message_that_is_too_long(self):
        self.assert_fault(self.second('{ name = "words", type = "text[64]" }'), "Second has 72 bytes, and max_message is 64")

    def test_a_type_that_is_not_there(self):
        self.assert_fault(self.second('{ name = "count", type = "u128" }'), "Second: there is no type u128")

    def test_a_list_that_one_assignment_would_have_to_copy(self):
        self.assert_fault(self.second('{ name = "counts", type = "u64[3]", source = "stats.counts" }', extra='from = ["stats"]'),
                          "Second.counts is a list, which code must copy")

    def test_a_source_that_the_sender_is_not_asked_for(self):
        self.assert_fault(self.second('{ name = "count", type = "u64", source = "stats.count" }', extra='from = ["queue"]'),
                          "Second.count comes from stats, which `from` does not name")

    def test_a_part_that_has_grown(self):
        self.assert_fault('[structs.Part]\nfields = [{ name = "new", type = "u64", since = 2 }]\n',
                          "Part is a part of messages, and never grows")

    def test_a_value_for_a_field_that_is_not_there(self):
        with self.assertRaisesRegex(DescriptionError, "First has no field amount"):
            Description(self.write(SMALLEST)).message("First").pack(amount=1)


class Lists(InAFolder):
    def test_are_as_long_as_their_integers_and_are_packed_in_their_order(self):
        text = SMALLEST + '[messages.Second]\nnumber = 2\ndirection = "there"\nfields = [{ name = "counts", type = "u32[4]" }]\n'
        second = Description(self.write(text)).message("Second")
        self.assertEqual(second.size, 24)
        self.assertEqual(second.pack(counts=[1, 2, 3, 4])[8:], b"".join(n.to_bytes(4, sys.byteorder) for n in (1, 2, 3, 4)))
        self.assertEqual(second.pack()[8:], bytes(16))


class Document(InAFolder):
    def generate(self, description, action):
        return subprocess.run([sys.executable, "-B", PROJECT / "codegen/messages.py", "--description", self.write(description),
                               "--document", self.folder / "protocol.md", action], capture_output=True, text=True, check=False)

    def test_that_is_not_what_the_description_says_is_found(self):
        self.assertEqual(self.generate(SMALLEST, "--write-document").returncode, 0)
        self.assertEqual(self.generate(SMALLEST, "--check-document").returncode, 0)
        result = self.generate(SMALLEST.replace("count", "amount"), "--check-document")
        self.assertEqual(result.returncode, 1)
        self.assertIn("+| 8 | `amount` | u64 |", result.stderr)


class Header(InAFolder):
    """Compiled for the sake of what it asserts."""
    MIRRORS = """
[structs.WireHints]
mirrors = "sched::Hints"
fields = [{ name = "priority", type = "i64" }]
[structs.MoreHints]
mirrors = "sched::Hints"
fields = [{ name = "weight", type = "i32" }, { name = "reserved", type = "u32" }]
"""
    PROGRAM = """
#include "ipc/messages.h"
namespace xsched::sched {
struct Hints { int64_t priority; int32_t weight; MORE };
}
namespace xsched::ipc {
constexpr sched::Hints kHints{-3, 7};
constexpr auto kBack = FromWire<sched::Hints>(WireHintsFrom(kHints), MoreHintsFrom(kHints));
static_assert(kBack.priority == -3 && kBack.weight == 7);
}
"""

    def compile(self, more=""):
        generate = [sys.executable, "-B", PROJECT / "codegen/messages.py", "--description", self.write(SMALLEST + self.MIRRORS),
                    "--out", self.folder / "ipc"]
        subprocess.run(generate, check=True)
        return subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-xc++", f"-I{self.folder}", f"-I{PROJECT}/src",
                               f"-I{PROJECT}/include", "-"], input=self.PROGRAM.replace("MORE", more), capture_output=True, text=True,
                              check=False)

    def test_converts_between_a_struct_and_all_parts_that_mirror_it(self):
        result = self.compile()
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_does_not_compile_where_no_part_has_a_member(self):
        result = self.compile("int64_t forgotten;")
        self.assertIn("a member is on one side only", result.stderr)


class Version2_0(unittest.TestCase):
    def setUp(self):
        self.description = Description(DESCRIPTION)

    def test_has_the_sizes_that_the_description_says(self):
        seen = set()
        for packet in recorded_packets():
            message = self.description.message_of(int.from_bytes(packet[:2], sys.byteorder))
            self.assertEqual(len(packet), message.size_in(MINOR_OF_2_0), message.name)
            seen.add(message.name)
        self.assertGreaterEqual(seen, {"Hello", "Welcome", "QueueCreated", "QueueHints", "QueueConfig", "QueueInfo", "Status"})

    def test_has_the_fields_where_the_description_says(self):
        for name, values in (("SetHints", {"queue_id": 1, "mask": 1, "hints": {"priority": 5}}),
                             ("QueueConfig", {"index": 0, "level": 1, "threshold": 12, "batch_size": 6})):
            self.assertIn(self.description.message(name).pack_in(MINOR_OF_2_0, **values), recorded_packets())


if __name__ == "__main__":
    COMPILER = sys.argv.pop()
    unittest.main()
