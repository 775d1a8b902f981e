#include "cli/new_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/exit_codes.h"
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

// Files cannot be longer meanwhile.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{size, former_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &former_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit former_{};
};

TEST(NewFile, of_which_only_a_part_can_be_written_says_why_and_leaves_nothing) {
  const server::testing::TempFolder folder;
  const std::string path = folder.path() + "/file";
  const FileSizeLimit limit(2);
  try {
    NewFile(path, "text");
    ADD_FAILURE();
  } catch (const CommandError& error) {
    EXPECT_EQ(error.what(), path + ": cannot be written: File too large");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace xsched::cli
