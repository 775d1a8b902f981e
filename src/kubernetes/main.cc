// xsched-kubernetes: the agent of a Kubernetes node. It is no part of the scheduler: without it, programs
// that run are scheduled as before.
#include <signal.h>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.h"
#include "kubernetes/say.h"
#include "kubernetes/serve_devices.h"
#include "server/version.h"

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

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  DeviceOptions devices;
  CLI::App app("The agent of a Kubernetes node for XSched");
  app.name("xsched-kubernetes");
  app.set_version_flag("--version", std::string("xsched-kubernetes ") + xsched::kVersion);
  app.require_subcommand(1);
  AddDevices(app, devices);
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
