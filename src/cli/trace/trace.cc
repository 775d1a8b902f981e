// xsched trace: a recording as a timeline that ui.perfetto.dev shows.
#include "cli/trace/timeline.h"

#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/commands.h"
#include "cli/record/recorder.h"

namespace xsched::cli {
namespace {

struct TraceOptions {
  std::string recording;
  std::optional<double> last;
  std::string output = "xsched.pftrace";
};

void Trace(const TraceOptions& options) {
  const bool from_stdin = options.recording == "-";
  std::ifstream file;
  std::stringstream remembered;
  if (options.last) {
    WriteLast(FromSeconds(*options.last), remembered);
  } else if (!from_stdin) {
    file.open(options.recording);
    if (!file) throw CommandError(kExitFailed, fmt::format("{}: cannot be read", options.recording));
  }
  std::istream& input = options.last ? static_cast<std::istream&>(remembered) : from_stdin ? std::cin : file;
  const bool to_stdout = options.output == "-";
  std::ofstream written;
  if (!to_stdout) written.open(options.output, std::ios::trunc | std::ios::binary);
  std::ostream& out = to_stdout ? std::cout : written;
  Timeline timeline(out);
  timeline.Read(input, options.last ? "the server's answer"
                       : from_stdin ? "standard input"
                                    : options.recording);
  if (!out.flush()) throw CommandError(kExitFailed, fmt::format("{}: cannot be written", options.output));
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
      ->check(CLI::Range(0.001, 1e6))
      ->type_name("SECONDS");
  source->require_option(1);
  trace->add_option("--output", options->output, "the file to write, or - (xsched.pftrace)")
      ->type_name("FILE");
  trace->callback([options] { Trace(*options); });
}

}  // namespace xsched::cli
