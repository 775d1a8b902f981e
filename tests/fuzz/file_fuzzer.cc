// A libFuzzer target for the smaller readers of files and requests that others write. The first byte says
// which one, and the rest is what it reads.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/pci_address.h"
#include "cli/doctor/elf_file.h"
#include "cli/simulate/device_file.h"
#include "fuzz/bytes.h"
#include "hal/cuda/channel_groups/object_table.h"
#include "hal/hip/kfd/requests.h"
#include "hal/hip/kfd/sysfs.h"
#include "ipc/client.h"
#include "ipc/memory_account.h"
#include "ipc/segment.h"
#include "sched/core/policy_setting.h"
#include "server/device_access.h"
#include "server/http/address.h"
#include "server/http/caller.h"
#include "server/log_output.h"
#include "server/options.h"
#include "server/process_state.h"
#include "server/tenants/audit_log.h"
#include "server/testing/server_process.h"
#include "shim/common/pass_rules.h"

using namespace xsched;

namespace {

// A file that is written anew for each input.
class OneFile {
 public:
  explicit OneFile(const char* name) : path_(folder_.path() + "/" + name) {}
  const std::string& Write(std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  const std::string& path() const { return path_; }
  std::string folder() const { return folder_.path(); }

 private:
  server::testing::TempFolder folder_;
  const std::string path_;
};

void ReadPassRules(fuzz::Bytes& bytes) {
  const std::string names(bytes.Until('\n'));
  shim::PassRules rules;
  rules.SetListedNames(names.c_str());
  int line = 0;
  if (!rules.ReadFile(bytes.Rest(), &line) && line < 1) abort();
  rules.Decide("/usr/lib/libblas.so.3", "cuLaunchKernel");
  rules.Decide("", "cuMemcpyHtoDAsync_v2");
}

void ReadPolicy(fuzz::Bytes& bytes) {
  const std::string text(bytes.Rest());
  Result<sched::PolicySetting> setting = sched::ParsePolicySetting(text.c_str());
  if (!setting) return;
  // What it is called is read as the same again.
  char written[sched::kPolicyTextSize];
  sched::WritePolicySetting(*setting, written);
  Result<sched::PolicySetting> again = sched::ParsePolicySetting(written);
  if (!again || !(*again == *setting)) abort();
}

void ReadElf(fuzz::Bytes& bytes) {
  static const OneFile file("program");
  const std::string& path = file.Write(bytes.Rest());
  cli::ReadElf(path);
  cli::InterpreterOf(path);
  cli::FileContains(path, "libcuda");
}

void ReadDevice(fuzz::Bytes& bytes) {
  static const OneFile file("device.json");
  try {
    cli::ReadDevice(file.Write(bytes.Rest()));
  } catch (const cli::CommandError&) {
  }
}

void ReadServersSettings(fuzz::Bytes& bytes) {
  static const OneFile file("xserver.json");
  const std::string& path = file.Write(bytes.Rest());
  std::string arguments[] = {"xserver", "--user", "--config", path};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(),
                  nullptr};
  try {
    server::ParseOptions(4, argv);
  } catch (const std::runtime_error&) {
  }
}

// As the kernel has it for AMD's driver: one line each of a GPU's number, its properties, and whether running
// work is saved.
void ReadTopology(fuzz::Bytes& bytes) {
  static const OneFile gpu("class/kfd/kfd/topology/nodes/0/gpu_id");
  const std::string root = gpu.folder();
  const auto write = [&root](const char* name, std::string_view text) {
    const std::filesystem::path path = root + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  };
  gpu.Write(bytes.Until('\0'));
  write("/module/amdgpu/parameters/cwsr_enable", bytes.Until('\0'));
  write("/class/kfd/kfd/topology/nodes/0/properties", bytes.Rest());
  hip::kfd::SavesWaves(root.c_str());
  const XDevice device = hip::kfd::DeviceOf(root.c_str(), 42);
  if (device != 0 && !hip::kfd::HasDevice(root.c_str(), device)) abort();
}

// A request ends where its own size says, and what is behind that is not readable.
template <typename Read>
void ReadRequest(fuzz::Bytes& bytes, Read&& read) {
  const auto request = bytes.Next<uint32_t>();
  std::vector<uint8_t> argument(request >> 16 & 0x3fff);
  bytes.Fill(argument.data(), argument.size());
  read(request, argument.data());
}

void ReadKfdRequest(fuzz::Bytes& bytes) {
  ReadRequest(bytes, [](uint32_t request, const void* argument) {
    if (hip::kfd::MayConcern(request)) hip::kfd::ReadRequest(request, argument);
  });
}

// A request of NVIDIA's driver, or one within another. The kernel has read it and what it points to, so its
// pointers are valid here as well.
void ReadRmRequest(fuzz::Bytes& bytes) {
  constexpr uint8_t kEscapes[] = {0x29, 0x2A, 0x2B, 0x34, 211};
  constexpr size_t kSizes[] = {16, 28, 32, 48};
  const auto escape = kEscapes[bytes.Below(5)];
  const bool within = bytes.Below(4) == 0;
  const uint32_t oddity = bytes.Below(16);
  std::vector<uint8_t> params(bytes.Below(3) * 4);
  bytes.Fill(params.data(), params.size());
  std::vector<uint8_t> request(oddity == 0 ? bytes.Below(64) : kSizes[bytes.Below(4)]);
  bytes.Fill(request.data(), request.size());
  const auto put = [](std::vector<uint8_t>& to, size_t at, const auto& value) {
    if (at + sizeof value <= to.size()) memcpy(to.data() + at, &value, sizeof value);
  };
  put(request, 16, params.empty() ? uint64_t{0} : reinterpret_cast<uint64_t>(params.data()));
  put(request, request.size() == 48 ? 32 : 24, static_cast<uint32_t>(params.size()));
  const auto number = [](uint32_t what, size_t size) {
    return _IOC(_IOC_READ | _IOC_WRITE, 'F', what, size);
  };
  if (!within) {
    cuda::rm::ReadRequest(number(escape, request.size()), request.data());
    return;
  }
  std::vector<uint8_t> outer(16);
  put(outer, 0, uint32_t{escape});
  put(outer, 4, static_cast<uint32_t>(request.size()));
  put(outer, 8, reinterpret_cast<uint64_t>(request.data()));
  cuda::rm::ReadRequest(number(211, outer.size()), outer.data());
}

// Objects that a driver makes, shares and frees, in any order and shape.
void ApplyRmEvents(fuzz::Bytes& bytes) {
  cuda::ObjectTable table;
  std::vector<int> in_use;
  const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (!bytes.empty()) {
    cuda::rm::Event event;
    event.kind = static_cast<cuda::rm::Event::Kind>(bytes.Below(6));
    event.client = bytes.Below(4);
    event.parent = bytes.Below(8);
    event.object = bytes.Below(8);
    constexpr uint32_t kClasses[] = {
        0x41,  cuda::rm::kDeviceClass, cuda::rm::kSubdeviceClass, cuda::rm::kChannelGroupClass, 0xC86F,
        0xCBC0};
    event.object_class = kClasses[bytes.Below(6)];
    event.instance = bytes.Below(3);
    event.source_client = bytes.Below(4);
    event.source = bytes.Below(8);
    event.on = bytes.Below(2) == 1;
    table.Apply(event, fd);
    table.Find(event.client, event.object);
    if (const int file = table.Use(event.client); file >= 0) in_use.push_back(file);
    if (!in_use.empty() && bytes.Below(2) == 1) {
      table.Release(in_use.back());
      in_use.pop_back();
    }
  }
  for (const int file : in_use) table.Release(file);
  close(fd);
}

// Another process of the user has the account's file mapped, and writes there what it likes.
void ReadMemoryAccount(fuzz::Bytes& bytes) {
  static const OneFile file("account");
  unlink(file.path().c_str());
  ipc::MemoryAccount account;
  if (!account.Open(file.path().c_str(), 1000)) abort();
  const int fd = open(file.path().c_str(), O_RDWR | O_CLOEXEC);
  const off_t size = lseek(fd, 0, SEEK_END);
  for (int writes = 0; writes < 16 && !bytes.empty(); ++writes) {
    const auto at = static_cast<off_t>(bytes.Next<uint16_t>()) * 8 % size;
    const auto value = bytes.Below(2) == 0 ? bytes.Below(4) : bytes.Next<uint64_t>();
    if (pwrite(fd, &value, sizeof value, at) < 0) abort();
    const int device = account.Device(bytes.Below(3));
    if (device < 0) continue;
    if (account.Take(device, bytes.Below(200))) account.GiveBack(device, bytes.Below(200));
    account.Count(device, 1);
    account.Own(device);
    account.device(device);
    account.DropEnded();
  }
  close(fd);
  ipc::MemoryAccount alone;
  if (!alone.Open(nullptr, 1000)) abort();
  ipc::MemoryAccount other;
  if (!other.Open(file.path().c_str(), 1000)) return;
  if (!other.Reopen()) return;
  other.DropEnded();
}

// A folder of accounts in which a file is what another program of the user has left.
void ReadAccountsFolder(fuzz::Bytes& bytes) {
  static const OneFile left("memory-0");
  if (bytes.Below(2) == 0) {
    left.Write(bytes.Rest());
  } else {
    Result<ipc::MemoryAccountPath> made = ipc::CreateMemoryAccount(left.folder().c_str(), 1);
    if (!made) abort();
    std::fstream file(made->text, std::ios::binary | std::ios::in | std::ios::out);
    for (int writes = 0; writes < 8 && !bytes.empty(); ++writes) {
      const auto value = bytes.Next<uint64_t>();
      file.seekp(bytes.Below(64) * 8).write(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  if (!ipc::CreateMemoryAccount(left.folder().c_str(), 1000)) abort();
  for (const auto& entry : std::filesystem::directory_iterator(left.folder()))
    std::filesystem::remove(entry.path());
}

// Where a client looks for its server, if the environment names this folder.
void FindServer(fuzz::Bytes& bytes) {
  const std::string folder(bytes.Rest().substr(0, 200));
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  unsetenv("XSCHED_SOCKET");
  ipc::FindServerSocket();
  ipc::UserServerSocket();
  if (!ipc::CheckUserServerFolder()) static_cast<void>(ipc::CheckSocketFolder(folder.c_str()));
  unsetenv("XDG_RUNTIME_DIR");
}

// What is at the address where the HTTP interface listens, and who asks there.
void ListenForHttp(fuzz::Bytes& bytes) {
  static const OneFile place("http");
  unlink(place.path().c_str());
  const bool by_port = bytes.Below(4) == 0;
  const uint32_t there = bytes.Below(4);
  const server::http::Address address{0,
                                      by_port ? "" : place.path() + std::string(bytes.Below(2) * 200, 'x')};
  try {
    UniqueFd former(by_port || there == 0 ? -1 : server::http::ListenAt(address, 0600));
    if (there == 1) former.Reset();  // and leaves its file
    if (there == 2) place.Write("a file");
    const UniqueFd listening(by_port ? server::http::ListenOnLoopback(0)
                                     : server::http::ListenAt(address, bytes.Below(8) * 0111));
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    getsockname(listening.get(), reinterpret_cast<sockaddr*>(&name), &size);
    const UniqueFd caller(socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(caller.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) return;
    const UniqueFd accepted(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::optional<server::Peer> peer = server::http::PeerAt(accepted.get());
    if (!peer || peer->uid != geteuid()) abort();
    struct stat status {};
    status.st_uid = bytes.Below(2);
    status.st_gid = bytes.Below(2);
    status.st_mode = bytes.Below(8) * 0111;
    for (const uid_t user : {0u, 1u, 2u}) server::http::MayConnect(server::http::PeerFor(user), status);
  } catch (const std::runtime_error&) {
  }
}

// Lines of any length, to a reader that is slow or gone.
void WriteLog(fuzz::Bytes& bytes) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) abort();
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  signal(SIGPIPE, SIG_IGN);
  server::LogOutput log(writer.get());
  while (!bytes.empty()) {
    const uint32_t step = bytes.Below(8);
    char room[4096];
    if (step == 0) reader.Reset();
    if (step == 1 && reader && read(reader.get(), room, sizeof room) < 0) continue;
    log.Write(std::string(bytes.Below(8) * 1000 + 1, 'x') + "\n");
  }
}

// Shared memory of any size, sealed in any way, as a client may send it.
void MapAnySegment(fuzz::Bytes& bytes) {
  const UniqueFd fd(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const off_t size = bytes.Below(2) == 0 ? static_cast<off_t>(ipc::kSegmentSize) : bytes.Next<uint16_t>();
  if (ftruncate(fd.get(), size) != 0) abort();
  uint64_t header[4];
  bytes.Fill(header, sizeof header);
  if (pwrite(fd.get(), header, std::min<size_t>(sizeof header, static_cast<size_t>(size)), 0) < 0) abort();
  const int seals =
      bytes.Below(2) == 0 ? F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL : static_cast<int>(bytes.Below(16));
  fcntl(fd.get(), F_ADD_SEALS, seals);
  static_cast<void>(ipc::MapSegment(fd.get()));
}

// What the kernel says of a process, in a line that has the name which the process has given itself.
void ReadProcessState(fuzz::Bytes& bytes) {
  const std::string name(bytes.Rest());
  if (prctl(PR_SET_NAME, name.c_str()) != 0) abort();
  // It runs, and it can be seen.
  if (server::IsStopped(getpid()) || !server::UsageOf(getpid())) abort();
  if (sched_getscheduler(0) == SCHED_OTHER &&
      server::CpuPriorityOf(getpid()) != -getpriority(PRIO_PROCESS, 0))
    abort();
}

// Files that a client shows, and what the kernel says of the devices.
void DecideAccess(fuzz::Bytes& bytes) {
  static const OneFile information("nvidia/0001:02:03.4/information");
  const std::filesystem::path sys = information.folder() + "/sys";
  std::filesystem::remove_all(information.folder() + "/nvidia");
  std::filesystem::remove_all(sys);
  const XDevice there = MakeDevice(kDeviceTypeGPU, PciAddress(1, 2, 3, 4));
  const uint32_t what = bytes.Below(8);
  std::filesystem::create_directories(sys / "dev/char");
  std::filesystem::create_directories(sys / "bus/pci/devices/0001:02:03.4");
  if ((what & 1) != 0)
    std::filesystem::create_directory_symlink(sys / "bus/pci/devices/0001:02:03.4", sys / "dev/char/226:3");
  const dev_t file = makedev(bytes.Below(2) == 0 ? 195 : 226, bytes.Below(4));
  if ((what & 2) != 0) {
    information.Write(bytes.Rest());
  } else {
    std::ofstream(sys / "bus/pci/devices/0001:02:03.4/vendor") << bytes.Rest();
  }
  server::DeviceAccess access((what & 4) == 0, {sys, information.folder() + "/nvidia"});
  if (access.MayUse({}, there) && (what & 4) == 0) abort();
  server::ShownDevices shown;
  access.Show(file, shown);
  access.MayUse(shown, there);
  access.MayUse(shown, bytes.Next<uint64_t>());
  if (!access.MayUse({}, MakeDevice(kDeviceTypeCPU, 1))) abort();
}

// Names of others in the journal's entries: each field is one line, and has its own name.
void WriteAudit(fuzz::Bytes& bytes) {
  static const OneFile place("journal");
  unlink(place.path().c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  place.path().copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd journal(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(journal.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();
  struct stat output {};
  fstat(STDERR_FILENO, &output);
  const uint32_t stream = bytes.Below(4);
  const uint64_t inode = output.st_ino + (stream == 1 ? 1 : 0);
  setenv("JOURNAL_STREAM", (std::to_string(output.st_dev) + ":" + std::to_string(inode)).c_str(), 1);
  spdlog::set_level(spdlog::level::off);
  server::AuditLog log(stream == 2 ? "/nobody/listens/here" : place.path().c_str());
  unsetenv("JOURNAL_STREAM");
  TimePoint now(std::chrono::hours(1));
  for (int records = 0; records < 100 && !bytes.empty(); ++records) {
    const auto number = bytes.Next<uint8_t>();
    now += std::chrono::milliseconds(number);
    server::AuditRecord record{.what = "hints", .who = {.pid = number, .uid = number % 3u}};
    record.verdict = static_cast<server::Verdict>(number % 3);
    for (std::string* text : {&record.tenant, &record.target, &record.from, &record.to, &record.reason})
      *text = bytes.Until('\0');
    log.Add(record, now);
    static char entry[32768];
    const ssize_t size = recv(journal.get(), entry, sizeof entry, 0);
    if (size < 0) continue;
    if (stream == 1 || stream == 2) abort();
    const std::string_view text(entry, static_cast<size_t>(size));
    std::set<std::string> names;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
      if (!names.insert(std::string(text.substr(at, text.find('=', at) - at))).second) abort();
    }
    if (names.size() > 12) abort();
  }
}

constexpr void (*kReaders[])(fuzz::Bytes&) = {
    ReadPassRules,  ReadPolicy,    ReadElf,       ReadDevice,        ReadServersSettings, ReadTopology,
    ReadKfdRequest, ReadRmRequest, ApplyRmEvents, ReadMemoryAccount, ReadAccountsFolder,  FindServer,
    ListenForHttp,  WriteLog,      MapAnySegment, ReadProcessState,  DecideAccess,        WriteAudit};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Bytes bytes({data, size});
  kReaders[bytes.Below(std::size(kReaders))](bytes);
  return 0;
}
