#pragma once

#include <grpcpp/create_channel.h>

#include <memory>
#include <string>

namespace xsched::kubernetes {

// To who serves at a Unix socket. Longer answers than `longest_answer` bytes are errors.
inline std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket, int longest_answer = 4 << 20) {
  grpc::ChannelArguments arguments;
  // A connection of its own: another one may still be waiting after a failure.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(longest_answer);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace xsched::kubernetes
