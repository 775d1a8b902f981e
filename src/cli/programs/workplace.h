// A folder for the files of a command. It is removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "cli/exit_codes.h"

namespace xsched::cli {

class Workplace {
 public:
  explicit Workplace(const std::string& command) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / ("xsched-" + command + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) throw CommandError(kExitFailed, "cannot make a temporary folder");
    folder_ = pattern;
  }
  ~Workplace() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  const std::string& path() const { return folder_.native(); }
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace xsched::cli
