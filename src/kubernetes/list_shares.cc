#include "kubernetes/list_shares.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "kubernetes/container_shares.h"
#include "kubernetes/text.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

void PrintJson(const std::vector<ContainerShare>& shares) {
  json all = json::array();
  for (const ContainerShare& share : shares) {
    json entry = {{"pod", share.pod}, {"container", share.container}, {"gpu", share.gpu}};
    if (share.percent) entry["percent"] = *share.percent;
    if (!share.claim.empty()) entry["claim"] = share.claim;
    all.push_back(entry);
  }
  fmt::print("{}\n", cli::JsonText(all));
}

void PrintRow(const ContainerShare& row, const std::string& percent) {
  fmt::print("{:<40} {:<20} {:>7}  {:<42} {}\n", OneLine(row.pod), OneLine(row.container), percent,
             OneLine(row.gpu), OneLine(row.claim));
}

void PrintTable(const std::vector<ContainerShare>& shares) {
  PrintRow({"POD", "CONTAINER", "GPU", {}, "CLAIM"}, "PERCENT");
  for (const ContainerShare& share : shares) {
    ContainerShare row = share;
    if (row.claim.empty()) row.claim = "-";
    PrintRow(row, row.percent ? std::to_string(*row.percent) : "-");
  }
}

}  // namespace

void ListShares(const ListOptions& options) {
  Result<v1::ListPodResourcesResponse> list = ListPodResources(options.pod_resources);
  if (!list) throw cli::CommandError(cli::kExitFailed, list.error().text());
  const std::vector<ContainerShare> shares = ContainerSharesIn(*list);
  if (options.as_json) return PrintJson(shares);
  PrintTable(shares);
}

}  // namespace xsched::kubernetes
