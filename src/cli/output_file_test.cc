#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "cli/exit_codes.h"
#include "server/testing/server_process.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

class WrittenFile : public ::testing::Test {
 protected:
  WrittenFile() {
    std::ofstream(precious_) << "precious";
    fs::create_symlink(precious_, link_);
  }
  static void Write(const std::string& path, bool is_named, const std::string& text) {
    OutputFile file;
    file.Open(path, is_named, kOwnerOnly);
    file << text;
    file.Close();
  }
  static void WriteReserved(OutputFile& file) {
    file.Begin();
    file << "new";
    file.Close();
  }
  static void Open(const std::string& path, bool is_named) { Write(path, is_named, ""); }
  // Why `action` failed.
  template <typename Action>
  static std::string Problem(const Action& action) {
    try {
      action();
      return "none";
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code, kExitFailed);
      return error.what();
    }
  }
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  server::testing::TempFolder folder_;
  const std::string precious_ = folder_.path() + "/precious";
  const std::string link_ = folder_.path() + "/recording.xrec";
  const std::string made_ = folder_.path() + "/made";
};

TEST_F(WrittenFile, of_a_name_by_default_is_no_symbolic_link_to_another_one) {
  EXPECT_THROW(Open(link_, /*is_named=*/false), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
}

TEST_F(WrittenFile, that_the_user_has_named_may_be_one) {
  Write(link_, /*is_named=*/true, "new");
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(WrittenFile, of_a_name_by_default_is_made_or_written_anew) {
  Write(made_, /*is_named=*/false, "long text");
  Write(made_, /*is_named=*/false, "short");
  EXPECT_EQ(TextOf(made_), "short");
  EXPECT_THROW(Open(folder_.path() + "/none/made", /*is_named=*/false), CommandError);
}

TEST_F(WrittenFile, that_cannot_be_written_says_why) {
  for (const auto& [path, why] : {std::pair(folder_.path(), "Is a directory"),
                                  std::pair(folder_.path() + "/none/made", "No such file or directory")}) {
    EXPECT_EQ(Problem([&path = path] { Open(path, /*is_named=*/true); }),
              path + ": cannot be written: " + why);
  }
}

TEST_F(WrittenFile, that_cannot_be_written_any_more_says_why) {
  const std::string problem = "/dev/full: cannot be written: No space left on device";
  EXPECT_EQ(Problem([] { Write("/dev/full", /*is_named=*/true, "short"); }), problem);
  EXPECT_EQ(Problem([] { Write("/dev/full", /*is_named=*/true, std::string(100'000, 'x')); }), problem);
  EXPECT_EQ(Problem([] {
              OutputFile file;
              file.Open("/dev/full", /*is_named=*/true, kOwnerOnly);
              file << "short";
              FlushOutput(file);
            }),
            problem);
  EXPECT_EQ(Problem([] {
              OutputFile file;
              file.Open("/dev/full", /*is_named=*/true, kOwnerOnly);
              for (int i = 0; i < 10'000; ++i) file << "many parts ";
            }),
            problem);
}

TEST_F(WrittenFile, that_is_reserved_and_not_begun_stays_as_it_was) {
  OutputFile there;
  OutputFile not_there;
  there.Reserve(precious_, /*is_named=*/true, kEverybody);
  not_there.Reserve(made_, /*is_named=*/true, kEverybody);
  EXPECT_EQ(TextOf(precious_), "precious");
  // Already now: a signal may end the program.
  EXPECT_FALSE(fs::exists(made_));
}

TEST_F(WrittenFile, that_is_reserved_may_be_written_by_another_one_who_keeps_it) {
  {
    OutputFile file;
    file.Reserve(made_, /*is_named=*/true, kEverybody);
    Write(made_, /*is_named=*/true, "of another one");
  }
  EXPECT_EQ(TextOf(made_), "of another one");
}

TEST_F(WrittenFile, that_is_reserved_is_the_one_that_has_the_name_when_it_is_begun) {
  for (const std::string& path : {made_, precious_}) {
    OutputFile file;
    file.Reserve(path, /*is_named=*/true, kEverybody);
    fs::remove(path);
    WriteReserved(file);
    EXPECT_EQ(TextOf(path), "new");
  }
  OutputFile file;
  file.Reserve(precious_, /*is_named=*/true, kEverybody);
  fs::rename(made_, precious_);
  WriteReserved(file);
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(WrittenFile, that_is_reserved_by_default_must_not_become_a_symbolic_link) {
  OutputFile file;
  file.Reserve(made_, /*is_named=*/false, kEverybody);
  fs::rename(link_, made_);
  EXPECT_THROW(file.Begin(), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
}

TEST_F(WrittenFile, that_is_reserved_by_a_link_is_made_where_the_link_leads) {
  fs::remove(precious_);
  fs::create_symlink("recording.xrec", folder_.path() + "/link to the link");
  OutputFile file;
  file.Reserve(folder_.path() + "/link to the link", /*is_named=*/true, kEverybody);
  EXPECT_FALSE(fs::exists(precious_));
  WriteReserved(file);
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(WrittenFile, of_a_link_that_leads_nowhere_says_why_when_it_is_reserved) {
  const std::string link = folder_.path() + "/lost";
  for (const auto& [target, why] : {std::pair("none/made", "No such file or directory"),
                                    std::pair("lost", "Too many levels of symbolic links")}) {
    fs::create_symlink(target, link);
    EXPECT_EQ(Problem([&] { OutputFile().Reserve(link, /*is_named=*/true, kEverybody); }),
              link + ": cannot be written: " + why);
    fs::remove(link);
  }
}

// It would read the end of the file, and go.
TEST_F(WrittenFile, that_is_a_fifo_keeps_its_reader) {
  ASSERT_EQ(mkfifo(made_.c_str(), 0600), 0);
  const UniqueFd reader(open(made_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  OutputFile file;
  file.Reserve(made_, /*is_named=*/true, kEverybody);
  char text[16];
  EXPECT_EQ(read(reader.get(), text, sizeof text), -1);
  EXPECT_EQ(errno, EAGAIN);
  WriteReserved(file);
  EXPECT_EQ(read(reader.get(), text, sizeof text), 3);
  EXPECT_EQ(read(reader.get(), text, sizeof text), 0);
}

TEST_F(WrittenFile, that_is_reserved_is_written_from_its_beginning) {
  OutputFile file;
  file.Reserve(precious_, /*is_named=*/true, kEverybody);
  WriteReserved(file);
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(WrittenFile, that_only_its_owner_may_see_is_made_so) {
  for (const bool is_named : {false, true}) {
    const std::string path = folder_.path() + (is_named ? "/named" : "/unnamed");
    Write(path, is_named, "secret");
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << path;
  }
}

// Whoever made it would hold up the command.
TEST_F(WrittenFile, of_a_name_by_default_is_no_fifo) {
  const std::string path = folder_.path() + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(Open(path, /*is_named=*/false), CommandError);
}

TEST_F(WrittenFile, of_a_name_by_default_is_not_another_user_s) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a file of another user";
  ASSERT_EQ(chown(precious_.c_str(), 1234, 1234), 0);
  EXPECT_THROW(Open(precious_, /*is_named=*/false), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
  Write(precious_, /*is_named=*/true, "new");
  EXPECT_EQ(TextOf(precious_), "new");
}

}  // namespace
}  // namespace xsched::cli
