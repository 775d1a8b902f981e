#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace xsched::cli {
namespace {

// Through the descriptor: by its name, the file could be another one by now.
std::string PathOf(const UniqueFd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

bool IsOurRegularFile(const UniqueFd& file) {
  struct stat status {};
  return fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

}  // namespace

CommandError CannotWrite(const std::string& path, int error) {
  return {ExitCodeOf(error),
          fmt::format("{} cannot be written{}{}", path == "-" ? "standard output" : path + ":",
                      error == 0 ? "" : ": ", error == 0 ? "" : strerror(error))};
}

void FlushOutput(std::ostream& out, const std::string& path) {
  const bool has_failed = !out;  // an earlier write, and nobody knows why any more
  errno = 0;
  if (!out.flush()) throw CannotWrite(path, has_failed ? 0 : errno);
}

OutputFile::OutputFile() : std::ostream(nullptr) {
  rdbuf(&buffer_);
  exceptions(badbit);
}

OutputFile::~OutputFile() {
  if (made_) unlink(path_.c_str());
}

void OutputFile::Reserve(const std::string& path, bool is_named, mode_t mode) {
  path_ = path;
  buffer_.SetPath(path);
  // Without O_NONBLOCK, a FIFO would be waited for.
  const int flags = O_WRONLY | O_CLOEXEC | (is_named ? 0 : O_NOFOLLOW | O_NONBLOCK);
  reserved_.Reset(open(path.c_str(), flags | O_CREAT | O_EXCL, mode));
  made_ = static_cast<bool>(reserved_);
  // A link may also lead to a file that is not there yet.
  if (!made_ && errno == EEXIST) reserved_.Reset(open(path.c_str(), flags | O_CREAT, mode));
  if (!is_named && (reserved_ ? !IsOurRegularFile(reserved_) : errno == ELOOP || errno == ENXIO)) {
    throw CommandError(
        kExitFailed,
        fmt::format("{} is there, and is not a regular file of yours: name the file that is to be written "
                    "(--output)",
                    path));
  }
  if (!reserved_) throw CannotWrite(path, errno);
}

void OutputFile::Begin() {
  made_ = false;
  errno = 0;
  if (buffer_.open(PathOf(reserved_), std::ios::out | std::ios::trunc | std::ios::binary) == nullptr)
    throw CannotWrite(path_, errno);
}

void OutputFile::Open(const std::string& path, bool is_named, mode_t mode) {
  Reserve(path, is_named, mode);
  Begin();
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
