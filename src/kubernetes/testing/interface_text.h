// What an interface is made of, for a comparison with what is published.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

namespace xsched::kubernetes::testing {

// In lines: "service.call input output", then "message.field number type".
std::string TextOf(const google::protobuf::FileDescriptor& file);

}  // namespace xsched::kubernetes::testing
