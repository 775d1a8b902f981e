#include "shim/common/pass_rules.h"

#include <string.h>

namespace xsched::shim {
namespace {

constexpr char kSeparators[] = ",:; ";

const char* FileOf(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

bool IsListed(const char* names, const char* library) {
  const char* file = FileOf(library);
  for (const char* name = names; *name != '\0';) {
    const size_t length = strcspn(name, kSeparators);
    if (length != 0 && strncmp(file, name, length) == 0) return true;
    name += length;
    name += strspn(name, kSeparators);
  }
  return false;
}

bool PassRules::ReadMode(JsonReader& json) {
  JsonText mode;
  if (!json.ReadText(&mode)) return false;
  listed_pass_ = mode.view() == "whitelist";
  return listed_pass_ || mode.view() == "blacklist";
}

bool PassRules::ReadLibraries(JsonReader& json) {
  has_libraries_ = true;
  JsonText name;
  for (json.EnterArray(); json.NextElement();) {
    if (!json.ReadText(&name) || libraries_.size() == kMaxNames || !libraries_.Push(name)) return false;
  }
  return json.ok();
}

bool PassRules::AddFunction(const JsonText& name, Rule rule) {
  return functions_.size() < kMaxNames && functions_.Push({name, rule});
}

bool PassRules::ReadFunctionList(JsonReader& json, Rule rule) {
  JsonText name;
  for (json.EnterArray(); json.NextElement();) {
    if (!json.ReadText(&name) || !AddFunction(name, rule)) return false;
  }
  return json.ok();
}

bool PassRules::ReadFunctions(JsonReader& json) {
  JsonText key;
  JsonText word;
  for (json.EnterObject(); json.NextKey(&key);) {
    const bool lists = json.Next() == JsonReader::Kind::kArray;
    if (!lists && !json.ReadText(&word)) return false;
    const std::string_view rule = lists ? key.view() : word.view();
    if (rule != "passthrough" && rule != "schedule") return false;
    const Rule meant = rule == "schedule" ? Rule::kSchedule : Rule::kPass;
    if (lists ? !ReadFunctionList(json, meant) : !AddFunction(key, meant)) return false;
  }
  return json.ok();
}

bool PassRules::ReadFile(std::string_view text, int* fault_line) {
  JsonReader json(text);
  JsonText key;
  bool understood = true;
  for (json.EnterObject(); understood && json.NextKey(&key);) {
    if (key.view() == "passthrough_mode") {
      understood = ReadMode(json);
    } else if (key.view() == "libraries") {
      understood = ReadLibraries(json);
    } else if (key.view() == "functions") {
      understood = ReadFunctions(json);
    } else {
      json.Skip();  // a key of another version, or a comment
    }
  }
  if (understood && json.AtEnd()) return true;
  *fault_line = json.line();
  listed_pass_ = true;
  has_libraries_ = false;
  libraries_.Clear();
  functions_.Clear();
  return false;
}

bool PassRules::InFile(std::string_view file) const {
  for (const JsonText& name : libraries_) {
    if (name.size != 0 && file.starts_with(name.view())) return true;
  }
  return false;
}

PassRules::Reason PassRules::Decide(const char* library, const char* function) const {
  for (const FunctionRule& rule : functions_) {
    if (rule.name.view() == function)
      return rule.rule == Rule::kPass ? Reason::kFunction : Reason::kScheduled;
  }
  if (names_ != nullptr && IsListed(names_, library)) return Reason::kLibrary;
  const bool passes = has_libraries_ && InFile(FileOf(library)) == listed_pass_;
  return passes ? Reason::kLibrary : Reason::kScheduled;
}

}  // namespace xsched::shim
