// xsched-kubernetes: the agent of a Kubernetes node. It is no part of the scheduler: without it, programs
// that run are scheduled as before.
#include <curl/curl.h>
#include <signal.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.h"
#include "kubernetes/api_server.h"
#include "kubernetes/say.h"
#include "kubernetes/serve_devices.h"
#include "kubernetes/serve_pods.h"
#include "server/version.h"
#include "xsched/types.h"

namespace {

using namespace xsched::kubernetes;

void AddDevices(CLI::App& app, DeviceOptions& options) {
  CLI::App* devices =
      app.add_subcommand("devices", "offer shares of this node's GPUs to the kubelet (xsched.org/share)");
  devices
      ->add_option("--device", options.named,
                   "one more device, which the kernel does not list: ID[,cdi=VENDOR/KIND=NAME][,file=/PATH]…")
      ->allow_extra_args(false);
  devices->add_option("--cdi-folder", options.cdi_folder,
                      "where the CDI specification is written (default: /var/run/cdi)");
  devices->add_flag("!--without-cdi", options.with_cdi,
                    "give containers mounts and variables, for an engine that knows no CDI");
  devices->add_option("--route", options.route, "as in xsched run")
      ->check(CLI::IsMember({"layer", "preload"}));
  devices->add_option(
      "--kubelet-folder", options.kubelet_folder,
      std::string("the kubelet's folder of device plugins (default: ") + kKubeletFolder + ")");
  devices->add_option("--root", options.root)->group("");
  devices
      ->add_option_function<int>("--look-period-ms",
                                 [&](int ms) { options.look_period = std::chrono::milliseconds(ms); })
      ->group("");
  devices->callback([&options] { ServeDevices(options); });
}

void AddPods(CLI::App& app, PodOptions& options) {
  CLI::App* pods = app.add_subcommand(
      "pods", "give programs the priority of their pod: its annotation and its PriorityClass");
  pods->add_option("--node", options.node,
                   "this node's name in the cluster (default: the variable NODE_NAME)")
      ->envname("NODE_NAME")
      ->required()
      ->check([](const std::string& name) {
        const bool is_name =
            !name.empty() &&
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
        return is_name ? "" : "no name of a node: " + name;
      });
  options.api_server = UrlOfApiServer();
  pods->add_option("--api-server", options.api_server, "its URL (default: as the cluster tells its pods)");
  pods->add_option("--account", options.account, "the folder of the service account (default: as in pods)");
  pods->add_option("--max-priority", options.max_priority, "no pod gets more (default: 255)")
      ->check(CLI::Range(PRIORITY_MIN, PRIORITY_MAX));
  pods->add_option_function<int>("--look-period-ms",
                                 [&](int ms) { options.look_period = std::chrono::milliseconds(ms); })
      ->group("");
  pods->add_option_function<int>("--refresh-period-ms",
                                 [&](int ms) { options.refresh_period = std::chrono::milliseconds(ms); })
      ->group("");
  pods->callback([&options] { ServePods(options); });
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  DeviceOptions devices;
  PodOptions pods;
  CLI::App app("The agent of a Kubernetes node for XSched");
  app.name("xsched-kubernetes");
  app.set_version_flag("--version", std::string("xsched-kubernetes ") + xsched::kVersion);
  app.require_subcommand(1);
  AddDevices(app, devices);
  AddPods(app, pods);
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
