// What LD_LIBRARY_PATH says about XSched. With XSched 1.2, the folder of its libraries there was enough to
// schedule a program.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct LibraryPath {
  bool has_ours = false;            // the folder of this installation's libraries
  std::vector<std::string> others;  // folders of other installations' libraries
};

// `folders`: as in LD_LIBRARY_PATH. `ours`: a path of this installation's libpreempt.so; empty: there is
// none.
LibraryPath ReadLibraryPath(const std::string& folders, const std::string& ours);
// This process's.
LibraryPath ReadLibraryPath();

// Why a folder of another installation does harm.
std::string ProblemOfOther(const std::string& folder);

}  // namespace xsched::cli
