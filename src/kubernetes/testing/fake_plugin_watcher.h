// The kubelet's side of the registration of a DRA driver, and its calls.
#pragma once

#include <memory>
#include <string>

#include "dra.grpc.pb.h"
#include "plugin_registration.grpc.pb.h"

namespace xsched::kubernetes::testing {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;

class FakePluginWatcher {
 public:
  // `home`: the kubelet's folder. Makes plugins_registry, as a kubelet does that starts.
  explicit FakePluginWatcher(std::string home);

  // As soon as there is a socket of this name in plugins_registry. An empty one: none has come in time.
  pluginregistration::PluginInfo WaitForPlugin(const std::string& socket) const;
  // Notifies the plugin of the result. `error`: "" if it is registered.
  bool Notify(const std::string& socket, const std::string& error = "") const;
  // To the driver that registers at this socket.
  std::unique_ptr<dra::DRAPlugin::Stub> Driver(const std::string& socket) const;

 private:
  std::string PathOf(const std::string& socket) const { return home_ + "/plugins_registry/" + socket; }

  const std::string home_;
};

}  // namespace xsched::kubernetes::testing
