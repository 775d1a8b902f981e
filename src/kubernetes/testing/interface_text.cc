#include "kubernetes/testing/interface_text.h"

#include <fmt/format.h>

namespace xsched::kubernetes::testing {

std::string TextOf(const google::protobuf::FileDescriptor& file) {
  std::string text = "\n";
  for (int i = 0; i < file.service_count(); ++i) {
    const auto& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      const auto& call = *service.method(j);
      text += fmt::format("{}.{} {} {}{}\n", service.name(), call.name(), call.input_type()->name(),
                          call.server_streaming() ? "stream " : "", call.output_type()->name());
    }
  }
  for (int i = 0; i < file.message_type_count(); ++i) {
    const auto& message = *file.message_type(i);
    for (int j = 0; j < message.field_count(); ++j) {
      const auto& field = *message.field(j);
      const bool has_type = field.message_type() != nullptr;
      const char* label = field.is_repeated() ? "repeated " : field.has_optional_keyword() ? "optional " : "";
      text += fmt::format("{}.{} {} {}{}\n", message.name(), field.name(), field.number(), label,
                          has_type ? field.message_type()->name() : field.type_name());
    }
  }
  return text;
}

}  // namespace xsched::kubernetes::testing
