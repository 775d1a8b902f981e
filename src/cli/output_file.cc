#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace xsched::cli {
namespace {

// Through the descriptor: by its name, the file could be another one by now.
std::string PathOf(const UniqueFd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

bool IsOurRegularFile(const UniqueFd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

// Where a file would be made that is opened by this path.
std::string EndOfLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // the kernel's own limit
  std::error_code is_no_link;
  for (int i = 0; i < kMostLinks; ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) break;
    path = path.parent_path() / target;
  }
  return path;
}

CommandError NotWritten(const std::string& what, int error) {
  return {ExitCodeOf(error), fmt::format("{} cannot be written{}{}", what, error == 0 ? "" : ": ",
                                         error == 0 ? "" : strerror(error))};
}

}  // namespace

CommandError CannotWrite(const std::string& path, int error) { return NotWritten(path + ":", error); }

CommandError CannotWriteStandardOutput(int error) { return NotWritten("standard output", error); }

void FlushOutput(std::ostream& out) {
  const bool has_failed = !out;  // an earlier write, and nobody knows why any more
  errno = 0;
  if (!out.flush()) throw CannotWriteStandardOutput(has_failed ? 0 : errno);
}

OutputFile::OutputFile() : std::ostream(nullptr) {
  rdbuf(&buffer_);
  exceptions(badbit);
}

void OutputFile::Reserve(const std::string& path, bool is_named, mode_t mode) {
  Name(path, is_named, mode);
  // A link may lead to a file that is not there yet.
  const std::string place = is_named && access(path.c_str(), F_OK) != 0 ? EndOfLinks(path) : path;
  if (const UniqueFd made = OpenAt(place, O_CREAT | O_EXCL)) {
    // At once: something may end this program, and later the name may be another one's file.
    unlink(place.c_str());
    return;
  }
  if (errno != EEXIST) throw CannotWrite(path, errno);
  reserved_ = OpenOrThrow();
}

void OutputFile::Begin() {
  const UniqueFd file = OpenOrThrow();
  errno = 0;
  if (buffer_.open(PathOf(file), std::ios::out | std::ios::trunc | std::ios::binary) == nullptr)
    throw CannotWrite(path_, errno);
  reserved_.Reset();
}

void OutputFile::Open(const std::string& path, bool is_named, mode_t mode) {
  Name(path, is_named, mode);
  Begin();
}

void OutputFile::Name(const std::string& path, bool is_named, mode_t mode) {
  path_ = path;
  is_named_ = is_named;
  mode_ = mode;
  buffer_.SetPath(path);
}

UniqueFd OutputFile::OpenAt(const std::string& place, int flags) const {
  // Without O_NONBLOCK, a FIFO would be waited for.
  flags |= O_WRONLY | O_CLOEXEC | (is_named_ ? 0 : O_NOFOLLOW | O_NONBLOCK);
  return UniqueFd(open(place.c_str(), flags, mode_));
}

UniqueFd OutputFile::OpenOrThrow() const {
  UniqueFd file = OpenAt(path_, O_CREAT);
  if (!is_named_ && (file ? !IsOurRegularFile(file) : errno == ELOOP || errno == ENXIO)) {
    throw CommandError(
        kExitFailed,
        fmt::format("{} is there, and is not a regular file of yours: name the file that is to be written "
                    "(--output)",
                    path_));
  }
  if (!file) throw CannotWrite(path_, errno);
  return file;
}

void OutputFile::Close() {
  errno = 0;
  if (buffer_.close() == nullptr) throw CannotWrite(path_, errno);
}

OutputFile::Buffer::int_type OutputFile::Buffer::overflow(int_type character) {
  const int_type result = std::filebuf::overflow(character);
  if (traits_type::eq_int_type(result, traits_type::eof())) throw CannotWrite(path_, errno);
  return result;
}

std::streamsize OutputFile::Buffer::xsputn(const char* text, std::streamsize size) {
  const std::streamsize written = std::filebuf::xsputn(text, size);
  if (written != size) throw CannotWrite(path_, errno);
  return written;
}

}  // namespace xsched::cli
