// Which commands are to pass unscheduled, by the library that calls and by the function called: what
// XSCHED_PASSTHROUGH_LIBS and the file XSCHED_PASSTHROUGH_FILE say. Reads no environment and no file.
//
//   {
//     "passthrough_mode": "whitelist",            those listed pass; "blacklist": all others do
//     "libraries": ["libhipblas.so", "libMIOpen"],  file names, or their beginnings
//     "functions": {"hipMemcpy": "passthrough", "hipLaunchKernel": "schedule"}
//   }
//
// "functions" may as well have two lists, "passthrough" and "schedule". What is said of a function goes
// before what is said of libraries.
#pragma once

#include <string_view>

#include "base/array.h"
#include "shim/common/json.h"

namespace xsched::shim {

// Is `library`, a path, in `names`, file names or their beginnings with , : ; or spaces between them?
bool IsListed(const char* names, const char* library);

class PassRules {
 public:
  // `names`: as IsListed has them; null: none.
  void SetListedNames(const char* names) { names_ = names; }

  // False: it is no such file; *fault_line says where. Nothing of it counts then.
  bool ReadFile(std::string_view text, int* fault_line);

  // Nothing passes, whoever asks.
  bool empty() const { return names_ == nullptr && !has_libraries_ && functions_.empty(); }

  enum class Reason { kScheduled, kLibrary, kFunction };
  // `library`: the path of the caller's; "" for the program itself. `function`: its name.
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

  // Of each sort; a file with more is not one that somebody wrote.
  static constexpr size_t kMaxNames = 1024;

  const char* names_ = nullptr;
  bool listed_pass_ = true;
  bool has_libraries_ = false;
  Array<JsonText> libraries_;
  Array<FunctionRule> functions_;
};

}  // namespace xsched::shim
