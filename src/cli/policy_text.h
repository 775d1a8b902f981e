// The server's policy, as tools show it and ask for it.
#pragma once

#include <string>

#include "cli/server_session.h"
#include "sched/core/policy_setting.h"

namespace xsched::cli {

// "HPF/CFS:process".
inline std::string PolicyText(const ipc::Status& status) {
  if (status.setting[0] != '\0') return status.setting;
  return sched::PolicyName(static_cast<XPolicyType>(status.policy));  // of an older server
}

// Throws CommandError: the server is too old for such a setting.
inline ipc::SetPolicy PolicyRequest(const ServerSession& server, const sched::PolicySetting& setting) {
  ipc::SetPolicy request{};
  request.policy = setting.first().type();
  if (setting.IsPlain()) return request;
  server.Require(kMinorOfChains, "to combine policies, or to say what they decide about");
  sched::WritePolicySetting(setting, request.setting);
  return request;
}

}  // namespace xsched::cli
