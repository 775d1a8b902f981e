#include "kubernetes/plugin_registry.h"

#include <fmt/format.h>
#include <grpcpp/server_builder.h>

#include <filesystem>
#include <stdexcept>

#include "kubernetes/grpc_server.h"
#include "kubernetes/say.h"
#include "kubernetes/unix_socket.h"

namespace xsched::kubernetes {
namespace {

constexpr const char* kPluginType = "DRAPlugin";

}  // namespace

PluginRegistry::PluginRegistry(const std::string& kubelet_home, DraPlugin& plugin)
    : plugin_socket_(FolderOf(kubelet_home) + "/dra.sock"),
      registration_socket_(fmt::format("{}/plugins_registry/{}-reg.sock", kubelet_home, kDriver)),
      plugin_(plugin),
      registration_(plugin_socket_) {
  if (IsServedAt(plugin_socket_)) throw std::runtime_error("another agent serves at " + plugin_socket_);
  std::error_code ignored;
  std::filesystem::create_directories(FolderOf(kubelet_home), ignored);
}

// The registration first: a driver that is known can be asked.
PluginRegistry::~PluginRegistry() {
  Stop(registration_server_);
  Stop(plugin_server_);
}

void PluginRegistry::Attend() {
  std::string failed;
  if (!Serve(plugin_socket_, plugin_, plugin_server_)) {
    failed = plugin_socket_;
  } else if (!Serve(registration_socket_, registration_, registration_server_)) {
    failed = registration_socket_;
  }
  if (!failed.empty() && failed != said_) Say("cannot make the socket " + failed);
  said_ = failed;
}

bool PluginRegistry::Serve(const std::string& socket, grpc::Service& service,
                           std::unique_ptr<grpc::Server>& server) {
  if (server != nullptr && IsServedAt(socket)) return true;
  Stop(server);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  server = builder.BuildAndStart();
  return server != nullptr;
}

std::string PluginRegistry::FolderOf(const std::string& kubelet_home) {
  return fmt::format("{}/plugins/{}", kubelet_home, kDriver);
}

grpc::Status PluginRegistry::Registration::GetInfo(grpc::ServerContext*,
                                                   const pluginregistration::InfoRequest*,
                                                   pluginregistration::PluginInfo* answer) {
  answer->set_type(kPluginType);
  answer->set_name(kDriver);
  answer->set_endpoint(endpoint_);
  answer->add_supported_versions(kDraService);
  return grpc::Status::OK;
}

grpc::Status PluginRegistry::Registration::NotifyRegistrationStatus(
    grpc::ServerContext*, const pluginregistration::RegistrationStatus* status,
    pluginregistration::RegistrationStatusResponse*) {
  if (status->plugin_registered()) {
    ++count_;
    Say(fmt::format("the kubelet has registered {}", kDriver));
  } else {
    Say(fmt::format("the kubelet does not register {}: {}", kDriver, status->error()));
  }
  return grpc::Status::OK;
}

}  // namespace xsched::kubernetes
