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
      registration_(plugin_socket_),
      kubelet_home_(kubelet_home) {
  if (IsServedAt(plugin_socket_)) throw std::runtime_error("another agent serves at " + plugin_socket_);
}

// The registration first: a driver that is known can be asked.
PluginRegistry::~PluginRegistry() {
  Stop(registration_server_);
  Stop(plugin_server_);
}

void PluginRegistry::Attend() {
  const std::string problem = ServeBoth();
  if (!problem.empty() && problem != said_) Say(problem);
  said_ = problem;
}

std::string PluginRegistry::ServeBoth() {
  // The kubelet makes it. If we did, a wrong path would not be noticed.
  std::error_code ignored;
  if (!std::filesystem::is_directory(kubelet_home_, ignored))
    return fmt::format("waiting for the kubelet: there is no folder {} (see --kubelet-home)", kubelet_home_);
  std::filesystem::create_directories(FolderOf(kubelet_home_), ignored);
  if (!Serve(plugin_socket_, plugin_, plugin_server_)) return "cannot make the socket " + plugin_socket_;
  if (!Serve(registration_socket_, registration_, registration_server_))
    return "cannot make the socket " + registration_socket_;
  return "";
}

bool PluginRegistry::Serve(const std::string& socket, grpc::Service& service,
                           std::unique_ptr<grpc::Server>& server) {
  if (server != nullptr && IsServedAt(socket)) return true;
  Stop(server);
  // gRPC would print lines of its own about a folder that is missing.
  std::error_code ignored;
  if (!std::filesystem::is_directory(std::filesystem::path(socket).parent_path(), ignored)) return false;
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
