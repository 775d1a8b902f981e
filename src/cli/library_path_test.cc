#include "cli/library_path.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "server/testing/server_process.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LibraryPathTest : public ::testing::Test {
 protected:
  std::string Folder(const char* name, bool has_xsched) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directory(path);
    if (has_xsched) std::ofstream(path + "/libpreempt.so") << "a library";
    return path;
  }

  server::testing::TempFolder folder_;
  const std::string none_ = Folder("none", false);
  const std::string ours_ = Folder("ours", true);
  const std::string other_ = Folder("other", true);
  const std::string our_library_ = ours_ + "/libpreempt.so";
};

TEST_F(LibraryPathTest, folders_without_xsched_mean_nothing) {
  for (const std::string& folders : {std::string(), none_, none_ + "::/no/such/folder"}) {
    const LibraryPath path = ReadLibraryPath(folders, our_library_);
    EXPECT_FALSE(path.has_ours) << folders;
    EXPECT_THAT(path.others, IsEmpty()) << folders;
  }
}

TEST_F(LibraryPathTest, our_own_folder_is_known_by_whatever_path) {
  const LibraryPath path = ReadLibraryPath(none_ + ":" + none_ + "/../ours", our_library_);
  EXPECT_TRUE(path.has_ours);
  EXPECT_THAT(path.others, IsEmpty());
}

TEST_F(LibraryPathTest, folders_of_another_xsched_are_named) {
  const LibraryPath path = ReadLibraryPath(other_ + ":" + ours_, our_library_);
  EXPECT_TRUE(path.has_ours);
  EXPECT_THAT(path.others, ElementsAre(other_));
  EXPECT_THAT(ReadLibraryPath(ours_, "").others, ElementsAre(ours_)) << "nothing of ours is installed";
}

}  // namespace
}  // namespace xsched::cli
