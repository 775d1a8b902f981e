// xsched record: what the programs put on their queues, and when, into a file that xsched simulate reads.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/record/recorder.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct RecordOptions {
  bool names_output = false;
  std::optional<double> seconds;
  std::optional<double> last;
  RecordingRequest request{.output = "recording.xrec"};
};

void Record(const RecordOptions& options) {
  RecordingRequest request = options.request;
  if (options.seconds) request.length = FromSeconds(*options.seconds);
  if (options.last) request.last = FromSeconds(*options.last);
  const bool to_stdout = request.output == "-";
  OutputFile file;
  Recorder recorder(request, to_stdout ? std::cout : file);
  if (!to_stdout) file.Open(request.output, options.names_output, kOwnerOnly);
  recorder.Run();
  if (to_stdout) {
    FlushOutput(std::cout);
  } else {
    file.Close();
  }
  const RecordingWriter& writer = recorder.writer();
  fmt::print(stderr, "{} queues, {} bursts in {:.1f} s: {}\n", writer.queues(), writer.bursts(),
             InSeconds(recorder.length()), request.output);
  if (request.last) WarnOfGap(recorder.covered(), *request.last);
  if (writer.lost() != 0) {
    fmt::print(stderr, "xsched: {} records were lost, because this command did not read them in time\n",
               writer.lost());
  }
  if (!recorder.problem().empty()) {
    throw CommandError(kExitNoServer, fmt::format("{}; {} has what was recorded until then",
                                                  recorder.problem(), request.output));
  }
}

}  // namespace

void AddRecord(CLI::App& app) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* record = app.add_subcommand(
      "record",
      "record what programs put on their queues, for simulate (your queues; all for administrators)");
  CLI::Option* seconds =
      record->add_option("--seconds", options->seconds, "how long; until Ctrl-C by default")
          ->transform(TimeInSeconds());
  CLI::Option* last = record->add_option("--last", options->last, kLastHelp)
                          ->transform(TimeInSeconds())
                          ->type_name("SECONDS")
                          ->excludes(seconds);
  CLI::Option* output =
      record->add_option("-o,--output", options->request.output, "the file to write, or - (recording.xrec)")
          ->type_name("FILE");
  record->add_flag("--anonymous", options->request.anonymous,
                   "numbers in place of names of programs, users and pids");
  record->add_option("--pid", options->request.pids, "only of these processes")
      ->check(AboveZero())
      ->excludes(last);
  record->callback([options, output] {
    options->names_output = output->count() != 0;
    Record(*options);
  });
}

}  // namespace xsched::cli
