// Replaces a file as a whole, or not at all: also if the machine fails meanwhile.
#pragma once

#include <string>

namespace xsched::cli {

class NewFile {
 public:
  // Writes `text` beside `path`, in a folder that is made if need be. Who may read it is as
  // before; if there was no such file, everybody may. Throws CommandError, as PutInPlace does.
  NewFile(const std::string& path, const std::string& text);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Where the text is until it is in place.
  const std::string& path() const { return new_path_; }
  void PutInPlace();

 private:
  [[noreturn]] void Fail() const;

  std::string path_;
  std::string new_path_;
  bool in_place_ = false;
};

// What the name of a new file has behind `path`, before six letters, until it is in place.
inline constexpr const char* kUnfinished = ".new-";

// Removes what programs that were killed have left of new files for `path`. REQUIRES: nobody writes one.
void RemoveUnfinished(const std::string& path);

}  // namespace xsched::cli
