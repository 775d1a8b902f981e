// xsched doctor: what would happen to a program here, and why.
#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/locations.h"
#include "cli/opencl_probe.h"
#include "cli/server_session.h"
#include "sched/core/policy.h"

namespace xsched::cli {
namespace {

using nlohmann::json;

struct DoctorOptions {
  bool as_json = false;
  std::vector<std::string> program;
};

// One line of the report.
struct Finding {
  std::string about;
  bool good;
  std::string text;
};

class Report {
 public:
  void Good(const std::string& about, const std::string& text) { findings_.push_back({about, true, text}); }
  void Bad(const std::string& about, const std::string& text) { findings_.push_back({about, false, text}); }

  void Print(bool as_json, bool scheduled) const {
    if (as_json) {
      json all = {{"scheduled", scheduled}, {"findings", json::array()}};
      for (const Finding& finding : findings_) {
        all["findings"].push_back({{"about", finding.about}, {"good", finding.good}, {"text", finding.text}});
      }
      fmt::print("{}\n", JsonText(all));
      return;
    }
    for (const Finding& finding : findings_) {
      fmt::print("[{}] {:<8} {}\n", finding.good ? "ok" : "--", finding.about, finding.text);
    }
    fmt::print("{}\n", scheduled ? "OpenCL programs are scheduled here (xsched run -- program)"
                                 : "programs run unscheduled here: see above");
  }

 private:
  std::vector<Finding> findings_;
};

bool ExamineOpenCl(Report& report) {
  std::optional<std::string> shim = FindLibrary("libshimopencl.so");
  if (shim) {
    report.Good("OpenCL", fmt::format("shim {}", *shim));
  } else {
    report.Bad("OpenCL", "libshimopencl.so is not installed beside this program");
  }
  OpenClProbe native = ProbeOpenCl("");
  if (!native.error.empty()) {
    report.Bad("OpenCL", native.error);
    return false;
  }
  if (!native.loader) {
    report.Bad("OpenCL", "libOpenCL.so.1 cannot be loaded (Debian: ocl-icd-libopencl1)");
    return false;
  }
  if (native.devices.empty())
    report.Bad("OpenCL", "no devices (CPU: pocl-opencl-icd; else the vendor's driver)");
  for (const OpenClDevice& device : native.devices) {
    report.Good("OpenCL", fmt::format("{}: {}; preemption level 1 (levels 2 and 3: OpenCL has no means)",
                                      device.platform, device.device));
  }
  if (!shim || native.devices.empty()) return false;
  OpenClProbe layered = ProbeOpenCl(*shim);
  if (layered.layer_works) {
    report.Good("OpenCL", "route: layer (OPENCL_LAYERS); a queue made through it has an XQueue");
    return true;
  }
  report.Bad("OpenCL",
             "the loader does not take layers (ocl-icd has them since 2.3): use xsched run --route preload");
  return false;
}

void ExamineOthers(Report& report) {
  struct {
    const char* platform;
    const char* runtime;
  } others[] = {{"CUDA", "libcuda.so.1"}, {"HIP", "libamdhip64.so"}};
  for (const auto& other : others) report.Bad(other.platform, "this build has no shim for it");
}

void ExamineServer(Report& report) {
  try {
    ServerSession server;
    ipc::Status status = server.Status();
    report.Good("server", fmt::format("{} at {}, policy {}, {} queues{}", status.version, server.path(),
                                      sched::PolicyName(static_cast<XPolicyType>(status.policy)),
                                      status.queues, status.is_admin != 0 ? "; you may set the policy" : ""));
  } catch (const CommandError& error) {
    if (FindProgram("xserver") || FindInPath("xserver")) {
      report.Good("server", "none is running; xsched run starts one");
    } else {
      report.Bad("server", fmt::format("{}; and xserver is not installed", error.what()));
    }
  }
}

void ExamineProgram(Report& report, const std::string& name) {
  std::optional<std::string> path = FindInPath(name);
  if (!path) {
    report.Bad("program", fmt::format("{} is not in PATH", name));
    return;
  }
  struct stat status {};
  if (stat(path->c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    report.Bad("program", "is setuid or setgid: preloading is ignored, and layers may be");
  }
  std::ifstream file(*path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || std::string_view(reinterpret_cast<char*>(header.e_ident), SELFMAG) != ELFMAG) {
    report.Good("program", fmt::format("{} is a script: its interpreter counts", *path));
    return;
  }
  bool dynamic = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<size_t>(i) * header.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    dynamic |= segment.p_type == PT_INTERP;
  }
  if (dynamic) {
    report.Good("program", fmt::format("{} is dynamically linked: both routes work", *path));
  } else {
    report.Bad(
        "program",
        fmt::format("{} is statically linked: only the layer can reach it, if its loader has layers", *path));
  }
}

void Examine(const DoctorOptions& options) {
  Report report;
  bool scheduled = ExamineOpenCl(report);
  ExamineOthers(report);
  ExamineServer(report);
  if (!options.program.empty()) ExamineProgram(report, options.program.front());
  report.Print(options.as_json, scheduled);
  if (!scheduled) throw CommandError(kExitFailed, "nothing here would be scheduled");
}

}  // namespace

void AddDoctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand("doctor", "say what would happen to a program here, and why");
  doctor->add_flag("--json", options->as_json, "as JSON");
  doctor->add_option("program", options->program, "the program, and what it is given");
  doctor->positionals_at_end();
  doctor->callback([options] { Examine(*options); });
}

}  // namespace xsched::cli
