#include "kubernetes/api_server.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>

namespace xsched::kubernetes {
namespace {

constexpr long kSeconds = 5;
constexpr size_t kLongestAnswer = 64 << 20;  // of a node with thousands of pods

std::string FirstLineOf(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

size_t Append(char* data, size_t, size_t size, void* answer) {
  auto& text = *static_cast<std::string*>(answer);
  if (text.size() + size > kLongestAnswer) return 0;  // ends the transfer
  text.append(data, size);
  return size;
}

using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

Headers HeadersFor(const std::string& token, bool has_body) {
  curl_slist* list = curl_slist_append(nullptr, "Accept: application/json");
  if (!token.empty()) list = curl_slist_append(list, ("Authorization: Bearer " + token).c_str());
  if (has_body) list = curl_slist_append(list, "Content-Type: application/json");
  return {list, curl_slist_free_all};
}

}  // namespace

Result<ApiAnswer> ApiServer::Ask(const std::string& method, const std::string& path,
                                 const std::string& body) const {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> request(curl_easy_init(), curl_easy_cleanup);
  if (request == nullptr) return Error::Make("libcurl does not start");
  const Headers headers = HeadersFor(FirstLineOf(account + "/token"), !body.empty());
  const std::string authority = account + "/ca.crt";
  ApiAnswer answer;
  auto set = [&](CURLoption option, auto value) { curl_easy_setopt(request.get(), option, value); };
  set(CURLOPT_URL, (url + path).c_str());
  set(CURLOPT_CUSTOMREQUEST, method.c_str());
  if (!body.empty()) {
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    set(CURLOPT_POSTFIELDS, body.data());
  }
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_CAINFO, authority.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT, kSeconds);
  set(CURLOPT_WRITEFUNCTION, Append);
  set(CURLOPT_WRITEDATA, &answer.body);
  const CURLcode done = curl_easy_perform(request.get());
  if (done != CURLE_OK) return Error::Make("%s: %s", url.c_str(), curl_easy_strerror(done));
  curl_easy_getinfo(request.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

Result<std::string> ApiServer::Get(const std::string& path) const {
  Result<ApiAnswer> answer = Ask("GET", path);
  if (!answer) return answer.error();
  if (answer->status != 200) return Refusal(*answer, "GET", path);
  return std::move(answer->body);
}

Error ApiServer::Refusal(const ApiAnswer& answer, const std::string& method, const std::string& path) const {
  return Error::Make("%s answers %ld to %s %s", url.c_str(), answer.status, method.c_str(), path.c_str());
}

std::string UrlOfApiServer() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) return "";
  const bool is_v6 = std::string(host).find(':') != std::string::npos;
  return fmt::format("https://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

}  // namespace xsched::kubernetes
