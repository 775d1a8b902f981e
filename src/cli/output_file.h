// The file that a command writes.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <ostream>
#include <string>

#include "base/fd.h"
#include "cli/exit_codes.h"

namespace xsched::cli {

// Who may read a file that is made: what only some may see, or what everybody may (less the umask).
inline constexpr mode_t kOwnerOnly = 0600;
inline constexpr mode_t kEverybody = 0644;

// `error`: why, as errno has it; 0: nobody knows.
CommandError CannotWrite(const std::string& path, int error);
CommandError CannotWriteStandardOutput(int error);

// Of standard output or an OutputFile, which says itself why it cannot be written. Throws CommandError.
void FlushOutput(std::ostream& out);

// A stream to a file. If the file cannot be written, whoever writes gets a CommandError that says why.
class OutputFile : public std::ostream {
 public:
  OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Finds out whether the file can be written, and changes nothing. Throws CommandError, as all here do.
  // Without a name by the user (`is_named`), it is a file of the current folder, which may belong to somebody
  // else, for example if an administrator looks at a user's programs. So it is a regular file of this user,
  // and neither a symbolic link nor anything that another one has put there.
  void Reserve(const std::string& path, bool is_named, mode_t mode);
  // Makes or empties the file that has the name now, which is then written. REQUIRES: it is reserved.
  void Begin();
  void Open(const std::string& path, bool is_named, mode_t mode);
  // All is written. Call it at the end.
  void Close();

 private:
  // Throws at the write that fails: later, nobody knows why.
  class Buffer : public std::filebuf {
   public:
    void SetPath(const std::string& path) { path_ = path; }

   protected:
    int_type overflow(int_type character) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;

   private:
    std::string path_;
  };

  void Name(const std::string& path, bool is_named, mode_t mode);
  // As the file is opened, but at `place` and with these flags as well. errno has why it cannot be.
  UniqueFd OpenAt(const std::string& place, int flags) const;
  UniqueFd OpenOrThrow() const;

  std::string path_;
  bool is_named_ = false;
  mode_t mode_ = 0;
  UniqueFd reserved_;  // what was there: without a writer, the reader of a FIFO would see the end of it
  Buffer buffer_;
};

}  // namespace xsched::cli
