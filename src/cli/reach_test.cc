#include "cli/reach.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/testing/tool.h"
#include "server/testing/server_process.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Outcome;
using testing::RunXsched;

class Reaching : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string Make(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    chmod(Path(name).c_str(), 0755);
    return Path(name);
  }
  // A copy of `program` whose loader is another, of a name that is no longer.
  std::string WithLoader(const std::string& name, const std::string& program,
                         const std::string& loader) const {
    std::string content = Content(program);
    const std::string before = ReadElf(program)->loader;
    EXPECT_LE(loader.size(), before.size());
    std::string after = loader;
    after.resize(before.size(), '\0');
    content.replace(content.find(before), before.size(), after);
    return Make(name, content);
  }
  // The loader of this machine's programs, which brings no version that our libraries need.
  std::string OldLoader() const {
    std::string content = Content(ReadElf("/usr/bin/env")->loader);
    for (size_t at; (at = content.find("GLIBC_2.34")) != std::string::npos;) content[at + 9] = 'x';
    return Make("ld", content);
  }
  // Preloaded is what there is without a GPU.
  Outcome Run(std::vector<std::string> program) const {
    program.insert(program.begin(), {"run", "--no-server", "--route", "preload", "--"});
    return RunXsched(program, {{"XSCHED_SOCKET", Path("socket")}});
  }
  static void ExpectOneLine(const Outcome& outcome, const std::string& text) {
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(text));
  }

  server::testing::TempFolder folder_;
};

// Tests that preload it need it, and no sanitizer in it.
bool ShimCanBePreloaded() {
#ifdef XSCHED_SANITIZED
  return false;
#else
  return access(XSCHED_SHIM, R_OK) == 0;
#endif
}

TEST_F(Reaching, a_program_is_reached_if_its_loader_brings_what_our_libraries_need) {
  EXPECT_EQ(TargetOf("env").reach, Reach::kReached);
  EXPECT_EQ(TargetOf("env").path, "/usr/bin/env");
  EXPECT_EQ(TargetOf(WithLoader("old", "/usr/bin/env", OldLoader())).reach, Reach::kOldGlibc);
  EXPECT_EQ(TargetOf(WithLoader("musl", "/usr/bin/env", "/lib/ld-musl-any.so.1")).reach, Reach::kMusl);
}

TEST_F(Reaching, a_script_is_judged_by_its_interpreter) {
  const std::string old = WithLoader("old", "/usr/bin/env", OldLoader());
  EXPECT_EQ(TargetOf(Make("script", "#!" + old + " -i\n")).reach, Reach::kOldGlibc);
}

TEST_F(Reaching, what_is_not_known_is_left_to_the_start_of_the_program) {
  EXPECT_EQ(TargetOf("no-such-program-anywhere").reach, Reach::kReached);
  EXPECT_EQ(TargetOf(Make("text", "text")).reach, Reach::kReached);
  EXPECT_EQ(TargetOf(WithLoader("lost", "/usr/bin/env", "/no/loader")).reach, Reach::kReached);
}

TEST_F(Reaching, programs_for_other_processors_and_static_ones_are_not_reached) {
  ElfFile elf = *ReadElf("/usr/bin/env");
  EXPECT_EQ(ReachOf(elf), Reach::kReached);
  ElfFile other = elf;
  other.machine = EM_RISCV;
  EXPECT_EQ(ReachOf(other), Reach::kOtherMachine);
  other = elf;
  other.is_64_bit = false;
  EXPECT_EQ(ReachOf(other), Reach::kOtherMachine);
  other = elf;
  other.has_loader = false;
  EXPECT_EQ(ReachOf(other), Reach::kStatic);
}

TEST_F(Reaching, a_path_for_preloading_is_the_same_file_from_any_folder) {
  const std::string path = ForPreloading("/lib/libshim.so");
  ASSERT_TRUE(path.starts_with("$ORIGIN/..")) << path;
  EXPECT_EQ(fs::path("/usr/local/bin" + path.substr(strlen("$ORIGIN"))).lexically_normal(),
            "/lib/libshim.so");
  EXPECT_EQ(ForPreloading("libshim.so"), "libshim.so");
}

TEST_F(Reaching, a_program_of_an_older_C_library_runs_without_what_would_end_it) {
  if (!ShimCanBePreloaded()) GTEST_SKIP() << "nothing is preloaded here";
  const Outcome outcome = Run({WithLoader("old", "/usr/bin/env", OldLoader())});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, Not(HasSubstr("LD_PRELOAD")));
  ExpectOneLine(outcome, "GLIBC_2.34");
}

TEST_F(Reaching, what_was_preloaded_before_is_taken_out_where_it_would_end_the_program) {
  if (!ShimCanBePreloaded()) GTEST_SKIP() << "nothing is preloaded here";
  const std::string old = WithLoader("old", "/usr/bin/env", OldLoader());
  const Outcome outcome = Run({XSCHED_PROGRAM, "run", "--no-server", "--route", "preload", "--", old});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(Reaching, programs_that_the_program_starts_are_reached) {
  if (!ShimCanBePreloaded()) GTEST_SKIP() << "nothing is preloaded here";
  const Outcome outcome = Run({"/bin/sh", "-c", "/usr/bin/env grep -o libshimopencl /proc/self/maps"});
  EXPECT_THAT(outcome.out, HasSubstr("libshimopencl"));
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Reaching, a_program_of_musl_runs_and_is_said_to_be_unscheduled) {
  if (access(MUSL_LOADER, X_OK) != 0 || !ShimCanBePreloaded()) GTEST_SKIP() << "needs " MUSL_LOADER;
  const Outcome outcome = Run({MUSL_PROGRAM});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "it runs\n");
  ExpectOneLine(outcome, "musl");
}

TEST_F(Reaching, a_program_of_musl_that_another_starts_runs) {
  if (access(MUSL_LOADER, X_OK) != 0 || !ShimCanBePreloaded()) GTEST_SKIP() << "needs " MUSL_LOADER;
  const Outcome outcome = Run({"/bin/sh", "-c", MUSL_PROGRAM});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "it runs\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Reaching, a_library_whose_path_no_list_can_name_is_reported) {
  if (!ShimCanBePreloaded()) GTEST_SKIP() << "nothing is preloaded here";
  const fs::path prefix = Path("a b");
  fs::create_directories(prefix / "bin");
  fs::create_directories(prefix / "lib");
  fs::copy_file(XSCHED_PROGRAM, prefix / "bin/xsched");
  fs::create_symlink(XSCHED_SHIM, prefix / "lib/libshimopencl.so");
  const Outcome preloaded =
      Run({prefix / "bin/xsched", "run", "--no-server", "--route", "preload", "/bin/true"});
  EXPECT_EQ(preloaded.status, 0);
  EXPECT_THAT(preloaded.errors, HasSubstr("a b/lib/libshimopencl.so: "));
  const Outcome layer =
      Run({prefix / "bin/xsched", "run", "--no-server", "--", "/bin/sh", "-c", "echo $OPENCL_LAYERS"});
  EXPECT_THAT(layer.out, HasSubstr("a b/lib/libshimopencl.so"));
  EXPECT_THAT(layer.errors, Not(HasSubstr("libshimopencl")));
}

TEST_F(Reaching, lists_cannot_name_paths_that_contain_their_separators) {
  EXPECT_TRUE(CanBePreloaded("/usr/lib/libshim.so"));
  EXPECT_FALSE(CanBePreloaded("/a b/libshim.so"));
  EXPECT_FALSE(CanBePreloaded("/a:b/libshim.so"));
  EXPECT_TRUE(CanBeLayer("/a b/libshim.so"));
  EXPECT_FALSE(CanBeLayer("/a:b/libshim.so"));
}

}  // namespace
}  // namespace xsched::cli
