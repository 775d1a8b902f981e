// xsched-kubernetes: the agent of a Kubernetes node. It is no part of the scheduler: without it, programs
// that run are scheduled as before.
#include <curl/curl.h>
#include <signal.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.h"
#include "kubernetes/api_server.h"
#include "kubernetes/list_shares.h"
#include "kubernetes/say.h"
#include "kubernetes/serve_claims.h"
#include "kubernetes/serve_devices.h"
#include "kubernetes/serve_pods.h"
#include "server/empty_values.h"
#include "server/version.h"
#include "xsched/types.h"

namespace {

using namespace xsched::kubernetes;

void AddLookPeriod(CLI::App& command, std::chrono::milliseconds& period) {
  command
      .add_option_function<int>("--look-period-ms",
                                [&period](int ms) { period = std::chrono::milliseconds(ms); })
      ->group("");
}

// Of both ways of offering GPUs.
void AddNodeOptions(CLI::App& command, NodeOptions& options) {
  command
      .add_option("--device", options.named,
                  "one more device, which the kernel does not list: ID[,cdi=VENDOR/KIND=NAME][,file=/PATH]…")
      ->allow_extra_args(false);
  command.add_option("--cdi-folder", options.cdi_folder,
                     "where CDI specifications are written (default: /var/run/cdi)");
  command.add_option("--route", options.route, "as in xsched run")
      ->check(CLI::IsMember({"layer", "preload"}));
  command.add_option("--dev", options.dev,
                     "the machine's /dev, as a container sees it that has it elsewhere (default: /dev)");
  command.add_option("--root", options.root)->group("");
  AddLookPeriod(command, options.look_period);
}

void AddDevices(CLI::App& app, DeviceOptions& options) {
  CLI::App* devices =
      app.add_subcommand("devices", "offer shares of this node's GPUs to the kubelet (xsched.org/share)");
  AddNodeOptions(*devices, options);
  devices->add_flag("!--without-cdi", options.with_cdi,
                    "give containers mounts and variables, for an engine that knows no CDI");
  devices->add_option(
      "--kubelet-folder", options.kubelet_folder,
      std::string("the kubelet's folder of device plugins (default: ") + kKubeletFolder + ")");
  devices->callback([&options] { ServeDevices(options); });
}

std::string ProblemOfNodeName(const std::string& name) {
  const bool is_name =
      !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
  return is_name ? "" : "no name of a node: " + name;
}

// Of all that ask the API server.
void AddClusterOptions(CLI::App& command, std::string& node, std::string& api_server, std::string& account) {
  command.add_option("--node", node, "this node's name in the cluster (default: the variable NODE_NAME)")
      ->envname("NODE_NAME")
      ->required()
      ->check(ProblemOfNodeName);
  api_server = UrlOfApiServer();
  command.add_option("--api-server", api_server, "its URL (default: as the cluster tells its pods)");
  command.add_option("--account", account, "the folder of the service account (default: as in pods)");
}

void AddClaims(CLI::App& app, ClaimOptions& options) {
  CLI::App* claims = app.add_subcommand(
      "claims", std::string("offer this node's GPUs to ResourceClaims, as the DRA driver ") + kDriver);
  AddNodeOptions(*claims, options);
  AddClusterOptions(*claims, options.node, options.api_server, options.account);
  auto* slots =
      claims->add_option("--slots", options.division.slots, "equal parts of each GPU (default: 10)");
  slots->check(CLI::Range(1, kMostSlots));
  claims
      ->add_flag("--by-capacity", options.division.by_capacity,
                 "offer each GPU as one device with 100 % to consume (feature DRAConsumableCapacity)")
      ->excludes(slots);
  claims->add_option("--kubelet-home", options.kubelet_home,
                     std::string("the kubelet's folder (default: ") + kKubeletHome + ")");
  claims
      ->add_option_function<int>("--publish-period-ms",
                                 [&](int ms) { options.publish_period = std::chrono::milliseconds(ms); })
      ->group("");
  claims->callback([&options] { ServeClaims(options); });
}

void AddPodResources(CLI::App& command, std::string& socket) {
  command.add_option(
      "--pod-resources", socket,
      std::string("the kubelet's socket that lists what pods have (default: ") + kPodResourcesSocket + ")");
}

void AddPods(CLI::App& app, PodOptions& options) {
  CLI::App* pods = app.add_subcommand(
      "pods", "give programs the priority of their pod: its annotation and its PriorityClass");
  AddClusterOptions(*pods, options.node, options.api_server, options.account);
  pods->add_option("--max-priority", options.max_priority, "no pod gets more (default: 255)")
      ->check(CLI::Range(PRIORITY_MIN, PRIORITY_MAX));
  pods->add_flag("--claims", options.reads_claims, "a priority that a ResourceClaim asks for counts, too");
  AddPodResources(*pods, options.pod_resources);
  AddLookPeriod(*pods, options.look_period);
  pods->add_option_function<int>("--refresh-period-ms",
                                 [&](int ms) { options.refresh_period = std::chrono::milliseconds(ms); })
      ->group("");
  pods->callback([&options] { ServePods(options); });
}

void AddList(CLI::App& app, ListOptions& options) {
  CLI::App* list =
      app.add_subcommand("list", "list which pods have which parts of this node's GPUs, as the kubelet says");
  AddPodResources(*list, options.pod_resources);
  list->add_flag("--json", options.as_json, "as JSON");
  list->callback([&options] { ListShares(options); });
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  DeviceOptions devices;
  ClaimOptions claims;
  PodOptions pods;
  ListOptions list;
  CLI::App app("The agent of a Kubernetes node for XSched");
  app.name("xsched-kubernetes");
  app.set_version_flag("--version", std::string("xsched-kubernetes ") + xsched::kVersion);
  app.require_subcommand(1);
  AddDevices(app, devices);
  AddClaims(app, claims);
  AddPods(app, pods);
  AddList(app, list);
  xsched::server::RefuseEmptyValues(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? xsched::cli::kExitOk : xsched::cli::kExitUsage;
  } catch (const xsched::cli::CommandError& error) {
    Say(error.what());
    return error.code;
  } catch (const std::exception& error) {
    Say(error.what());
    return xsched::cli::kExitFailed;
  }
  return xsched::cli::kExitOk;
}
