#include "cli/new_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "cli/output_file.h"

namespace xsched::cli {
namespace {

// The functions here leave why they failed in errno.

// A part may be written before the disk is full.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

// Its user or group may be the server's, and nobody else may be allowed to read it.
bool SetAccess(int fd, const std::string& path, NewFile::Access access) {
  struct stat former {};
  struct stat made {};
  const bool replaces =
      access == NewFile::Access::kAsBefore && lstat(path.c_str(), &former) == 0 && S_ISREG(former.st_mode);
  if (fstat(fd, &made) != 0) return false;
  const bool is_another_s = former.st_uid != made.st_uid || former.st_gid != made.st_gid;
  if (replaces && is_another_s && fchown(fd, former.st_uid, former.st_gid) != 0) return false;
  return fchmod(fd, replaces ? former.st_mode & 0777 : 0644) == 0;
}

// A machine that fails right after the rename must not have the name of the new file with nothing in it.
// Where the file system has nothing to wait for, it refuses (EINVAL).
bool Settle(int fd) { return fsync(fd) == 0 || errno == EINVAL; }

}  // namespace

NewFile::NewFile(const std::string& path, const std::string& text, Access access)
    : path_(path), new_path_(path + kUnfinished + "XXXXXX") {
  std::error_code no_folder;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), no_folder);
  UniqueFd fd(mkstemp(new_path_.data()));
  // If the folder is missing, what counts is why it cannot be made.
  if (!fd) throw CannotWrite(path_, errno == ENOENT && no_folder ? no_folder.value() : errno);
  // The first that fails says why.
  if (WriteAll(fd.get(), text) && SetAccess(fd.get(), path, access) && Settle(fd.get()) &&
      close(fd.Release()) == 0)
    return;
  const int error = errno;
  unlink(new_path_.c_str());
  throw CannotWrite(path_, error);
}

NewFile::~NewFile() {
  if (!in_place_) unlink(new_path_.c_str());
}

void NewFile::PutInPlace() {
  if (rename(new_path_.c_str(), path_.c_str()) != 0) throw CannotWrite(path_, errno);
  in_place_ = true;
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
