#include "kubernetes/testing/fake_plugin_watcher.h"

#include <grpcpp/create_channel.h>

#include <filesystem>

#include "kubernetes/testing/patience.h"

namespace xsched::kubernetes::testing {
namespace {

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

FakePluginWatcher::FakePluginWatcher(std::string home) : home_(std::move(home)) {
  std::filesystem::create_directories(home_ + "/plugins_registry");
}

pluginregistration::PluginInfo FakePluginWatcher::WaitForPlugin(const std::string& socket) const {
  const auto plugin = pluginregistration::Registration::NewStub(ChannelTo(PathOf(socket)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  context.set_wait_for_ready(true);
  pluginregistration::PluginInfo info;
  const grpc::Status status = plugin->GetInfo(&context, pluginregistration::InfoRequest(), &info);
  return status.ok() ? info : pluginregistration::PluginInfo();
}

bool FakePluginWatcher::Notify(const std::string& socket, const std::string& error) const {
  const auto plugin = pluginregistration::Registration::NewStub(ChannelTo(PathOf(socket)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(error.empty());
  status.set_error(error);
  pluginregistration::RegistrationStatusResponse answer;
  return plugin->NotifyRegistrationStatus(&context, status, &answer).ok();
}

std::unique_ptr<dra::DRAPlugin::Stub> FakePluginWatcher::Driver(const std::string& socket) const {
  return dra::DRAPlugin::NewStub(ChannelTo(WaitForPlugin(socket).endpoint()));
}

}  // namespace xsched::kubernetes::testing
