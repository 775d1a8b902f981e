// The rules of XSCHED_PASSTHROUGH_LIBS and the file XSCHED_PASSTHROUGH_FILE: which commands pass unscheduled,
// by the calling library and by the called function. Reads no environment and no file.
//
//   {
//     "passthrough_mode": "whitelist",           listed libraries pass; "blacklist": all others do
//     "libraries": ["libblas.so", "libsolver"],  file names or prefixes of them
//     "functions": {"copyMemory": "passthrough", "launchKernel": "schedule"}
//   }
//
// "functions" may also have two lists, "passthrough" and "schedule". The rule of a function takes precedence
// over those of libraries.
#pragma once

#include <string_view>

#include "base/array.h"
#include "shim/common/json.h"

namespace xsched::shim {

// True if the path `library` matches one of `names`: file names or prefixes of them, separated by , : ; or
// spaces.
bool IsListed(const char* names, const char* library);

class PassRules {
 public:
  // `names`: as for IsListed; null: none.
  void SetListedNames(const char* names) { names_ = names; }

  // False: the file is wrong in line *fault_line. Then none of its rules applies.
  bool ReadFile(std::string_view text, int* fault_line);

  // True if nothing passes.
  bool empty() const { return names_ == nullptr && !has_libraries_ && functions_.empty(); }

  enum class Reason { kScheduled, kLibrary, kFunction };
  // `library`: the path of the calling library; "" for the program itself. `function`: the name of the called
  // one.
  Reason Decide(const char* library, const char* function) const;

 private:
  enum class Rule : char { kPass, kSchedule };
  struct FunctionRule {
    JsonText name;
    Rule rule;
  };

  bool ReadMode(JsonReader& json);
  bool ReadLibraries(JsonReader& json);
  bool ReadFunctions(JsonReader& json);
  bool ReadFunctionList(JsonReader& json, Rule rule);
  bool AddFunction(const JsonText& name, Rule rule);
  bool InFile(std::string_view file) const;

  // The most names of each kind: far more than in a file that a person writes.
  static constexpr size_t kMaxNames = 1024;

  const char* names_ = nullptr;
  bool listed_pass_ = true;
  bool has_libraries_ = false;
  Array<JsonText> libraries_;
  Array<FunctionRule> functions_;
};

}  // namespace xsched::shim
