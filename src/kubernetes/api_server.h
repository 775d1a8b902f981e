// Asks Kubernetes' API server, with the service account of this pod.
#pragma once

#include <string>

#include "base/result.h"

namespace xsched::kubernetes {

// The folder of the service account, in each pod.
inline constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

struct ApiAnswer {
  long status = 0;  // of HTTP
  std::string body;
};

struct ApiServer {
  std::string url;  // "https://10.0.0.1:443"
  std::string
      account;  // the folder of the service account: its token, which is replaced now and then, and ca.crt
  // What the server answers, whatever it is. `body`: JSON; empty: none. The error says what the connection
  // says.
  Result<ApiAnswer> Ask(const std::string& method, const std::string& path,
                        const std::string& body = "") const;
  // The body of the answer to GET `path`. The error says what the server, or the connection, says.
  Result<std::string> Get(const std::string& path) const;
  // An answer that is no success.
  Error Refusal(const ApiAnswer& answer, const std::string& method, const std::string& path) const;
};

// That of this cluster, as it tells each pod by variables; empty: this is no pod.
std::string UrlOfApiServer();

}  // namespace xsched::kubernetes
