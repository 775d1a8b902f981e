// xserver-http: the HTTP interface of XSched 1.2 and the metrics, for a server on this machine. A process of
// its own, which xserver starts when it is asked to: whatever happens here, scheduling goes on.
//
// One thread, which waits for no client: libmicrohttpd reads and writes as sockets allow. The number of
// connections, their memory, their idle time and the length of a body are limited.
#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <new>
#include <utility>

#include "base/fd.h"
#include "base/standard_descriptors.h"
#include "server/empty_values.h"
#include "server/http/address.h"
#include "server/http/caller.h"
#include "server/http/connections_of_users.h"
#include "server/http/metrics.h"
#include "server/http/routes.h"
#include "server/http/snapshot.h"
#include "server/version.h"

namespace {

using namespace xsched::server;
using namespace xsched::server::http;

constexpr size_t kMaxBody = 64 * 1024;
constexpr unsigned kMaxConnections = 64;
constexpr unsigned kMaxConnectionsOfUser = kMaxConnections / 4;
constexpr unsigned kIdleSeconds = 5;
constexpr size_t kMemoryOfConnection = 32 * 1024;

struct Options {
  std::string socket;
  std::string admin_group;
  std::string metrics_group;
  bool metrics_only = false;
  bool metrics_per_queue = false;
  int listen_fd = -1;
  std::string address;  // "": the default port
};

// A caller over TCP is known by its uid alone. And this program may not be allowed to see other processes.
bool IsConfinedHere(pid_t, uid_t) { return false; }

// A request whose body arrives piece by piece.
struct Pending {
  Request request;
  bool too_long = false;
};

int SocketOf(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

class Gateway {
 public:
  explicit Gateway(const Options& options)
      : socket_(options.socket),
        client_(options.socket),
        access_(geteuid(), FindGroup(options.admin_group), IsConfinedHere),
        metrics_{options.metrics_only, FindGroup(options.metrics_group), options.metrics_per_queue},
        routes_(client_, access_, metrics_) {}

  ConnectionsOfUsers& connections() { return connections_; }

  Answer Handle(const Pending& pending, MHD_Connection* connection) {
    if (pending.too_long) return {413, {{"error", "the body is too long"}}};
    return routes_.Handle(pending.request, CallerOf(pending.request, connection));
  }

 private:
  std::optional<Peer> CallerOf(const Request& request, MHD_Connection* connection) const {
    std::optional<Peer> peer = PeerAt(SocketOf(connection));
    if (!peer) return std::nullopt;
    access_.Decide(*peer);
    // For metrics, their group does instead of the right to connect to the server.
    if (request.path == kMetricsPath && Readers(access_, metrics_.group).SeesAll(*peer)) return peer;
    struct stat socket {};
    if (stat(socket_.c_str(), &socket) != 0 || !MayConnect(*peer, socket)) return std::nullopt;
    return peer;
  }

  std::string socket_;
  SocketClient client_;
  AccessRules access_;
  Routes::Metrics metrics_;
  Routes routes_;
  ConnectionsOfUsers connections_{kMaxConnectionsOfUser};
};

std::string HeaderOf(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? "" : value;
}

MHD_Result AddParameter(void* parameters, MHD_ValueKind, const char* name, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(parameters))[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

Pending* Begin(MHD_Connection* connection, const char* path, const char* method) {
  auto pending = std::make_unique<Pending>();
  Request& request = pending->request;
  request.method = method;
  request.path = path;
  request.host = HeaderOf(connection, MHD_HTTP_HEADER_HOST);
  request.origin = HeaderOf(connection, "Origin");
  request.accept = HeaderOf(connection, MHD_HTTP_HEADER_ACCEPT);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &AddParameter, &request.parameters);
  return pending.release();
}

void AddToBody(Pending& pending, const char* data, size_t size) {
  pending.too_long = pending.too_long || pending.request.body.size() + size > kMaxBody;
  if (!pending.too_long) pending.request.body.append(data, size);
}

MHD_Result Reply(MHD_Connection* connection, const Answer& answer) {
  const bool is_text = answer.text_type != nullptr;
  std::string text =
      is_text ? answer.text : answer.body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  MHD_Response* response = MHD_create_response_from_buffer(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                          is_text ? answer.text_type : "application/json");
  const MHD_Result result = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return result;
}

// Called when the headers of a request are there, for each piece of its body, and at its end. MHD_NO closes
// the connection.
MHD_Result OnRequest(void* gateway, MHD_Connection* connection, const char* path, const char* method,
                     const char*, const char* data, size_t* size, void** state) try {
  if (*state == nullptr) {
    *state = Begin(connection, path, method);
    return MHD_YES;
  }
  auto& pending = *static_cast<Pending*>(*state);
  if (*size != 0) {
    AddToBody(pending, data, *size);
    *size = 0;
    return MHD_YES;
  }
  return Reply(connection, static_cast<Gateway*>(gateway)->Handle(pending, connection));
} catch (const std::exception&) {
  return MHD_NO;  // no memory
}

void OnCompleted(void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
  delete static_cast<Pending*>(*state);
}

// A connection begins or ends. One too many of its user is shut down: the library then ends it.
void OnConnection(void* gateway, MHD_Connection* connection, void** user,
                  MHD_ConnectionNotificationCode what) {
  ConnectionsOfUsers& connections = static_cast<Gateway*>(gateway)->connections();
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    if (*user == nullptr) return;
    connections.Remove(*static_cast<uid_t*>(*user));
    delete static_cast<uid_t*>(std::exchange(*user, nullptr));
    return;
  }
  const int socket = SocketOf(connection);
  const std::optional<Peer> peer = PeerAt(socket);
  const uid_t uid = peer ? peer->uid : ConnectionsOfUsers::kUnknown;
  if (connections.Add(uid)) {
    *user = new (std::nothrow) uid_t(uid);
    if (*user != nullptr) return;
    connections.Remove(uid);
  }
  shutdown(socket, SHUT_RDWR);
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  CLI::App app("XSched 1.2's HTTP interface to a server on this machine, and metrics, for this machine");
  app.set_version_flag("--version", fmt::format("xserver-http {}", xsched::kVersion));
  app.add_option("ADDRESS", options.address,
                 fmt::format("listen at this port of 127.0.0.1 (default {}, with --metrics-only {}) or at "
                             "this Unix socket (a path)",
                             kDefaultPort, kDefaultMetricsPort))
      ->check([](const std::string& text) {
        return ParseAddress(text) ? "" : "neither a port nor a path with a /: " + text;
      });
  app.add_option("--socket", options.socket, "the server's socket");
  app.add_option("--admin-group", options.admin_group, "as the server's");
  app.add_flag("--metrics-only", options.metrics_only, "answer GET /metrics and nothing else");
  app.add_flag("--metrics-per-queue", options.metrics_per_queue, "also series of single queues");
  app.add_flag_callback(
         "--metrics-table",
         [] {
           fmt::print("{}", MetricsTable());
           std::exit(0);
         },
         "print the table of docs/metrics.md")
      ->group("");
  app.add_option("--listen-fd", options.listen_fd, "a socket that listens already, as from xserver");
  RefuseEmptyValues(app);
  // Empty: none. The unit of systemd names a group only if the administrator has set one.
  app.add_option("--metrics-group", options.metrics_group, "its members see the metrics of all users");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  if (options.socket.empty()) options.socket = xsched::ipc::FindServerSocket().text;
  return options;
}

// The socket that systemd listens at for us (sd_listen_fds(3)). -1: none.
int SocketOfServiceManager() {
  constexpr int kFirst = 3;
  const char* pid = getenv("LISTEN_PID");
  const char* count = getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || pid != std::to_string(getpid())) return -1;
  if (std::string(count) != "1") throw std::runtime_error("one socket is expected of the service manager");
  fcntl(kFirst, F_SETFD, FD_CLOEXEC);
  fcntl(kFirst, F_SETFL, fcntl(kFirst, F_GETFL) | O_NONBLOCK);
  return kFirst;
}

// Whoever can connect to a Unix socket is identified, so its mode is for all.
constexpr mode_t kMode = 0666;

// The library would abort.
bool Listens(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

int Listen(const Options& options) {
  if (options.listen_fd >= 0) {
    if (!Listens(options.listen_fd))
      throw std::runtime_error(fmt::format("{} is no socket that listens", options.listen_fd));
    return options.listen_fd;
  }
  if (const int socket = SocketOfServiceManager(); socket >= 0) return socket;
  const Address standard{options.metrics_only ? kDefaultMetricsPort : kDefaultPort, ""};
  return ListenAt(options.address.empty() ? standard : *ParseAddress(options.address), kMode);
}

void Run(const Options& options) {
  sigset_t ending;
  sigemptyset(&ending);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ending, signal);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  signal(SIGPIPE, SIG_IGN);
  Gateway gateway(options);
  xsched::UniqueFd listening(Listen(options));
  MHD_Daemon* daemon =
      MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &OnRequest, &gateway,  //
                       MHD_OPTION_LISTEN_SOCKET, listening.get(),                                 //
                       MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,                              //
                       MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,                               //
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMemoryOfConnection,                   //
                       MHD_OPTION_NOTIFY_CONNECTION, &OnConnection, &gateway,                     //
                       MHD_OPTION_NOTIFY_COMPLETED, &OnCompleted, nullptr, MHD_OPTION_END);
  if (daemon == nullptr) throw std::runtime_error("libmicrohttpd does not start");
  listening.Release();  // it is the library's now
  int signal = 0;
  sigwait(&ending, &signal);
  MHD_stop_daemon(daemon);
}

}  // namespace

int main(int argc, char** argv) {
  xsched::OpenStandardDescriptors();
  try {
    Run(ParseOptions(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "xserver-http: {}\n", error.what());
    return 1;
  }
  return 0;
}
