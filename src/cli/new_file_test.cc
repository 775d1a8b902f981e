#include "cli/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "server/testing/server_process.h"

namespace {

off_t synced = -1;  // the size of the file that was written to the disk last

}  // namespace

// In place of libc's, in this program.
extern "C" int fsync(int fd) {
  struct stat file {};
  fstat(fd, &file);
  synced = file.st_size;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace xsched::cli {
namespace {

TEST(NewFile, the_text_is_on_the_disk_before_the_file_has_its_name) {
  const server::testing::TempFolder folder;
  const std::string path = folder.path() + "/made/file";
  synced = -1;
  NewFile file(path, "text");
  EXPECT_EQ(synced, 4);
  EXPECT_FALSE(std::filesystem::exists(path));
  file.PutInPlace();
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "text");
}

TEST(NewFile, what_is_not_put_in_place_leaves_nothing) {
  const server::testing::TempFolder folder;
  { NewFile file(folder.path() + "/file", "text"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace xsched::cli
