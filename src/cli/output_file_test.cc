#include "cli/output_file.h"

#include <gtest/gtest.h>

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
  EXPECT_THROW(OpenOutput(link_, /*is_named=*/false), CommandError);
  EXPECT_EQ(TextOf(precious_), "precious");
}

TEST_F(OutputFile, that_the_user_has_named_may_be_one) {
  OpenOutput(link_, /*is_named=*/true) << "new";
  EXPECT_EQ(TextOf(precious_), "new");
}

TEST_F(OutputFile, of_a_name_by_default_is_made_or_written_anew) {
  const std::string path = folder_.path() + "/made";
  OpenOutput(path, /*is_named=*/false) << "long text";
  OpenOutput(path, /*is_named=*/false) << "short";
  EXPECT_EQ(TextOf(path), "short");
  EXPECT_THROW(OpenOutput(folder_.path() + "/none/made", /*is_named=*/false), CommandError);
}

}  // namespace
}  // namespace xsched::cli
