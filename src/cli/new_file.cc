#include "cli/new_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "cli/exit_codes.h"

namespace xsched::cli {

NewFile::NewFile(const std::string& path, const std::string& text, Access access)
    : path_(path), new_path_(path + kUnfinished + "XXXXXX") {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  int fd = mkstemp(new_path_.data());
  if (fd < 0) Fail();
  struct stat former {};
  struct stat made {};
  const bool replaces =
      access == Access::kAsBefore && lstat(path.c_str(), &former) == 0 && S_ISREG(former.st_mode);
  bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  // Its user or group may be the server's, and nobody else may be allowed to read it.
  written &= fstat(fd, &made) == 0;
  if (replaces && (former.st_uid != made.st_uid || former.st_gid != made.st_gid))
    written &= fchown(fd, former.st_uid, former.st_gid) == 0;
  written &= fchmod(fd, replaces ? former.st_mode & 0777 : 0644) == 0;
  // A machine that fails right after the rename must not have the name of the new file with nothing in it.
  // Where the file system has nothing to wait for, it refuses (EINVAL).
  written &= fsync(fd) == 0 || errno == EINVAL;
  written &= close(fd) == 0;
  if (!written) {
    unlink(new_path_.c_str());
    Fail();
  }
}

NewFile::~NewFile() {
  if (!in_place_) unlink(new_path_.c_str());
}

void NewFile::PutInPlace() {
  if (rename(new_path_.c_str(), path_.c_str()) != 0) Fail();
  in_place_ = true;
}

void NewFile::Fail() const {
  throw CommandError(ExitCodeOf(errno), fmt::format("cannot write {}: {}", path_, strerror(errno)));
}

void RemoveUnfinished(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string begin = fs::path(path).filename().string() + kUnfinished;
  std::error_code ignored;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with(begin)) unfinished.push_back(entry.path());
  }
  for (const fs::path& file : unfinished) fs::remove(file, ignored);
}

}  // namespace xsched::cli
