// Makes the driver known to the kubelet: serves it at a socket of its own, and the registration at another
// one, in the folder that the kubelet watches (plugins_registry).
//
// The kubelet finds the socket, asks for the driver's name and its socket, and says what came of it. It does
// so again after a restart of its own. If the registration's socket goes, it forgets the driver, and after
// half a minute removes the node's ResourceSlices.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <memory>
#include <string>

#include "kubernetes/dra_plugin.h"
#include "plugin_registration.grpc.pb.h"

namespace xsched::kubernetes {

inline constexpr const char* kKubeletHome = "/var/lib/kubelet";

class PluginRegistry {
 public:
  // `kubelet_home`: the kubelet's folder, with plugins and plugins_registry. Throws std::runtime_error:
  // another agent serves there.
  PluginRegistry(const std::string& kubelet_home, DraPlugin& plugin);
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  // Serves at both sockets, if that is not so (any more).
  void Attend();
  // How often the kubelet has registered the driver.
  int registrations() const { return registration_.count(); }

  // The driver's folder, for its socket and its checkpoint.
  static std::string FolderOf(const std::string& kubelet_home);

 private:
  class Registration final : public pluginregistration::Registration::Service {
   public:
    explicit Registration(std::string endpoint) : endpoint_(std::move(endpoint)) {}
    int count() const { return count_; }

    grpc::Status GetInfo(grpc::ServerContext* context, const pluginregistration::InfoRequest* request,
                         pluginregistration::PluginInfo* answer) override;
    grpc::Status NotifyRegistrationStatus(grpc::ServerContext* context,
                                          const pluginregistration::RegistrationStatus* status,
                                          pluginregistration::RegistrationStatusResponse* answer) override;

   private:
    const std::string endpoint_;
    std::atomic<int> count_ = 0;
  };

  // Returns why that is not possible yet; empty: it is done.
  std::string ServeBoth();
  // False: there is no such folder, or it is not ours to write.
  bool Serve(const std::string& socket, grpc::Service& service, std::unique_ptr<grpc::Server>& server);

  const std::string plugin_socket_;
  const std::string registration_socket_;
  DraPlugin& plugin_;
  Registration registration_;
  std::unique_ptr<grpc::Server> plugin_server_;
  std::unique_ptr<grpc::Server> registration_server_;
  const std::string kubelet_home_;
  std::string said_;  // why it failed last
};

}  // namespace xsched::kubernetes
