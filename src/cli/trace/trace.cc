// xsched trace: a recording as a timeline that ui.perfetto.dev shows.
#include "cli/trace/timeline.h"

#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/input_file.h"
#include "cli/output_file.h"
#include "cli/record/recorder.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct TraceOptions {
  std::string recording;
  std::optional<double> last;
  std::vector<std::string> torch;
  std::string output = "xsched.pftrace";
  bool names_output = false;
};

// Only now, because the file may be the recording, or a good trace that a bad recording must not replace.
void Write(std::string_view trace, const std::string& path, bool is_named) {
  if (path == "-") {
    std::cout << trace;
    return FlushOutput(std::cout);
  }
  OutputFile file;
  file.Open(path, is_named, kOwnerOnly);
  file << trace;
  file.Close();
}

void AddTorch(const std::string& path, Timeline& timeline) {
  std::ifstream file = OpenInput(path);
  const ShownSlices slices = timeline.AddTorch(ReadChromeTrace(file, path));
  if (slices.shown == 0) {
    throw CommandError(kExitFailed,
                       fmt::format("{}: none of its slices is from the recording's time ({} are not)", path,
                                   slices.left_out));
  }
  fmt::print(stderr, "{}: {} slices", path, slices.shown);
  if (slices.left_out != 0) fmt::print(stderr, ", and {} outside the recording's time", slices.left_out);
  fmt::print(stderr, "\n");
}

void Trace(const TraceOptions& options) {
  const bool from_stdin = options.recording == "-";
  std::ifstream file;
  std::stringstream remembered;
  if (options.last) {
    WriteLast(FromSeconds(*options.last), remembered);
  } else if (!from_stdin) {
    file = OpenInput(options.recording);
  }
  std::istream& input = options.last ? static_cast<std::istream&>(remembered) : from_stdin ? std::cin : file;
  std::ostringstream trace;
  Timeline timeline(trace);
  if (!options.torch.empty()) timeline.UseUnixTimes();
  timeline.Read(input, options.last ? "the server's answer"
                       : from_stdin ? "standard input"
                                    : options.recording);
  if (timeline.empty()) {
    throw CommandError(
        kExitFailed,
        "nothing to show: no program had to share a device in this time (one that is alone on its "
        "device is recorded by xsched record only)");
  }
  for (const std::string& path : options.torch) AddTorch(path, timeline);
  Write(trace.view(), options.output, options.names_output);
  fmt::print(stderr, "{} requests: {}\n", timeline.requests(), options.output);
  if (timeline.lost() != 0) {
    fmt::print(stderr, "xsched: {} records were lost, because xsched record did not read them in time\n",
               timeline.lost());
  }
  if (timeline.was_cut_off()) fmt::print(stderr, "xsched: the recording was cut off: it has no end\n");
}

}  // namespace

void AddTrace(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* trace = app.add_subcommand("trace", "a recording as a timeline, for ui.perfetto.dev");
  auto* source = trace->add_option_group("what to show");
  source->add_option("RECORDING", options->recording, "what xsched record wrote, or -")->type_name("FILE");
  source->add_option("--last", options->last, "what the server remembers of the last so many seconds")
      ->transform(TimeInSeconds())
      ->type_name("SECONDS");
  source->require_option(1);
  trace
      ->add_option("--torch", options->torch,
                   "also what PyTorch's profiler wrote (export_chrome_trace), of the same time; repeatable")
      ->allow_extra_args(false)
      ->type_name("FILE");
  CLI::Option* output =
      trace->add_option("-o,--output", options->output, "the file to write, or - (xsched.pftrace)")
          ->type_name("FILE");
  trace->callback([options, output] {
    options->names_output = output->count() != 0;
    Trace(*options);
  });
}

}  // namespace xsched::cli
