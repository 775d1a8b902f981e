// Replaces a file as a whole, or not at all: also if the machine fails meanwhile.
#pragma once

#include <cstdint>
#include <string>

namespace xsched::cli {

class NewFile {
 public:
  enum class Access : uint8_t {
    kEverybody,  // it is the caller's, and everybody may read it
    kAsBefore,   // owner, group and mode are those of the file that it replaces, if there is one
  };

  // Writes `text` beside `path`, in a folder that is made if need be. Throws CommandError, as PutInPlace
  // does.
  NewFile(const std::string& path, const std::string& text, Access access = Access::kEverybody);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Where the text is until it is in place.
  const std::string& path() const { return new_path_; }
  void PutInPlace();

 private:
  std::string path_;
  std::string new_path_;
  bool in_place_ = false;
};

// What the name of a new file has behind `path`, before six letters, until it is in place.
inline constexpr const char* kUnfinished = ".new-";

// Removes what programs that were killed have left of new files for `path`. REQUIRES: nobody writes one.
void RemoveUnfinished(const std::string& path);

}  // namespace xsched::cli
