// Several policies are simulated at the same time.
#include "cli/simulate/outcome.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/locations.h"
#include "cli/simulate/load_file.h"
#include "cli/simulate/report.h"

namespace xsched::cli {
namespace {

TEST(Predictions, of_several_policies_side_by_side_are_those_of_each_alone) {
  constexpr Duration kWarmUp = std::chrono::milliseconds(100);
  const std::string path = FindShared("examples/loads/weights.xrec").value();
  std::ifstream file(path);
  LoadReader reader;
  reader.Read(file, path);
  const sched::sim::Load load = reader.Finish(std::chrono::seconds(1), std::nullopt);
  const std::vector<Scheme> schemes = AllSchemes();
  std::vector<Outcome> alone;
  for (const Scheme& scheme : schemes) alone.push_back(Predict(load, scheme, kWarmUp));
  EXPECT_EQ(OutcomesJson(PredictAll(load, schemes, kWarmUp)), OutcomesJson(alone));
}

}  // namespace
}  // namespace xsched::cli
