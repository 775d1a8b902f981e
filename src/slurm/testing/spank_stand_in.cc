#include "slurm/testing/spank_stand_in.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace xsched::slurm::testing {
namespace {

StandIn this_job;
std::vector<std::string> entries;
std::vector<char*> pointers;

char** Environment() {
  entries.clear();
  pointers.clear();
  for (const auto& [name, value] : this_job.environment) entries.push_back(name + "=" + value);
  for (const std::string& entry : this_job.odd_entries) entries.push_back(entry);
  for (std::string& entry : entries) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers.data();
}

std::string Formatted(const char* format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  return text;
}

}  // namespace

StandIn& ThisJob() { return this_job; }
void NewJob() { this_job = {}; }

}  // namespace xsched::slurm::testing

using xsched::slurm::testing::ThisJob;
constexpr auto kDone = static_cast<spank_err_t>(ESPANK_SUCCESS);  // a macro, and an int

extern "C" {

spank_context_t spank_context() { return ThisJob().context; }

spank_err_t spank_option_register(spank_t /*spank*/, spank_option* option) {
  ThisJob().options.push_back(*option);
  return kDone;
}

spank_err_t spank_get_item(spank_t /*spank*/, spank_item_t item, ...) {
  va_list arguments;
  va_start(arguments, item);  // NOLINT: SPANK declares it so
  void* to = va_arg(arguments, void*);
  va_end(arguments);
  const auto set = [&](uint32_t value) { *static_cast<uint32_t*>(to) = value; };
  switch (item) {
    case S_JOB_ID:
      set(ThisJob().job);
      return kDone;
    case S_JOB_STEPID:
      set(ThisJob().step);
      return kDone;
    case S_JOB_NODEID:
      set(ThisJob().node);
      return kDone;
    case S_JOB_LOCAL_TASK_COUNT:
      set(ThisJob().tasks);
      return kDone;
    case S_JOB_ENV:
      *static_cast<char***>(to) = xsched::slurm::testing::Environment();
      return kDone;
    default:
      return ESPANK_BAD_ARG;
  }
}

spank_err_t spank_getenv(spank_t /*spank*/, const char* name, char* text, int size) {
  const auto found = ThisJob().environment.find(name);
  if (found == ThisJob().environment.end()) return ESPANK_ENV_NOEXIST;
  // It fills the text also if that is too short.
  snprintf(text, static_cast<size_t>(size), "%s", found->second.c_str());
  return found->second.size() < static_cast<size_t>(size) ? kDone : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t /*spank*/, const char* name, const char* value, int overwrite) {
  if (overwrite == 0 && ThisJob().environment.contains(name)) return ESPANK_ENV_EXISTS;
  ThisJob().environment[name] = value;
  return kDone;
}

// It reports success whatever it finds.
spank_err_t spank_unsetenv(spank_t /*spank*/, const char* name) {
  ThisJob().environment.erase(name);
  return kDone;
}

void slurm_spank_log(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ThisJob().to_user.push_back(xsched::slurm::testing::Formatted(format, arguments));
  va_end(arguments);
}

void slurm_info(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ThisJob().to_log.push_back(xsched::slurm::testing::Formatted(format, arguments));
  va_end(arguments);
}

void slurm_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ThisJob().errors.push_back(xsched::slurm::testing::Formatted(format, arguments));
  va_end(arguments);
}
}
