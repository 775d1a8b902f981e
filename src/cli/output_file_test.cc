#include "cli/output_file.h"

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

class OutputFile : public ::testing::Test {
 protected:
  OutputFile() {
    std::ofstream(precious_) << "precious";
    fs::create_symlink(precious_, link_);
  }
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  server::testing::TempFolder folder_;
  const std::string precious_ = folder_.path() + "/precious";
  const std::string link_ = folder_.path() + "/recording.xrec";
};

TEST_F(OutputFile, of_a_name_by_default_is_no_symbolic_link_to_another_one) {
  EXPECT_THROW(OpenOutput(link_, /*is_named=*/false, kOwnerOnly), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
}

TEST_F(OutputFile, that_the_user_has_named_may_be_one) {
  OpenOutput(link_, /*is_named=*/true, kOwnerOnly) << "new";
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(OutputFile, of_a_name_by_default_is_made_or_written_anew) {
  const std::string path = folder_.path() + "/made";
  OpenOutput(path, /*is_named=*/false, kOwnerOnly) << "long text";
  OpenOutput(path, /*is_named=*/false, kOwnerOnly) << "short";
  EXPECT_EQ(TextOf(path), "short");
  EXPECT_THROW(OpenOutput(folder_.path() + "/none/made", /*is_named=*/false, kOwnerOnly), CommandError);
}

TEST_F(OutputFile, that_cannot_be_written_says_why) {
  for (const auto& [path, why] : {std::pair(folder_.path(), "Is a directory"),
                                  std::pair(folder_.path() + "/none/made", "No such file or directory")}) {
    try {
      OpenOutput(path, /*is_named=*/true, kOwnerOnly);
      ADD_FAILURE() << path;
    } catch (const CommandError& error) {
      EXPECT_EQ(error.what(), path + ": cannot be written: " + why);
      EXPECT_EQ(error.code, kExitFailed);
    }
  }
}

TEST_F(OutputFile, that_only_its_owner_may_see_is_made_so) {
  for (const bool is_named : {false, true}) {
    const std::string path = folder_.path() + (is_named ? "/named" : "/unnamed");
    OpenOutput(path, is_named, kOwnerOnly) << "secret";
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << path;
  }
}

// Whoever made it would hold up the command.
TEST_F(OutputFile, of_a_name_by_default_is_no_fifo) {
  const std::string path = folder_.path() + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(OpenOutput(path, /*is_named=*/false, kOwnerOnly), CommandError);
}

TEST_F(OutputFile, of_a_name_by_default_is_not_another_user_s) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a file of another user";
  ASSERT_EQ(chown(precious_.c_str(), 1234, 1234), 0);
  EXPECT_THROW(OpenOutput(precious_, /*is_named=*/false, kOwnerOnly), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
  OpenOutput(precious_, /*is_named=*/true, kOwnerOnly) << "new";
  EXPECT_EQ(TextOf(precious_), "new");
}

}  // namespace
}  // namespace xsched::cli
