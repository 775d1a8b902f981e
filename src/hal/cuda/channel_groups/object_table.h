// What the process's driver has allocated from the resource manager, as far as channel groups need it:
// devices, subdevices, channel groups, channels and compute objects, and the open file of each client.
//
//   client ── device ─┬─ subdevice                      (for questions about the GPU)
//                     └─ channel group ── channel ── compute object
//
// Bounded; what does not fit is left out and remembered as missing. Not thread-safe; makes no request to RM.
#pragma once

#include <sys/stat.h>

#include <span>

#include "base/array.h"
#include "base/fd.h"
#include "hal/cuda/channel_groups/resource_manager.h"
#include "xsched/types.h"

namespace xsched::cuda {

struct Object {
  rm::Handle client = 0;
  rm::Handle parent = 0;
  rm::Handle handle = 0;
  uint32_t object_class = 0;
  uint32_t instance = UINT32_MAX;  // a device's
  bool scheduled = false;          // a channel's or a group's: the driver has put it on the hardware's list
  XDevice address = 0;             // a device's, once asked for; 0: not known
};

class ObjectTable {
 public:
  static constexpr size_t kMaxObjects = 8192;
  static constexpr size_t kMaxClients = 256;

  constexpr ObjectTable() = default;
  ~ObjectTable() { Clear(); }

  // `fd` is what the request went to. True: channel groups came, went or changed.
  bool Apply(const rm::Event& event, int fd);
  void Clear();

  std::span<const Object> objects() const { return objects_; }
  // Null: not there.
  Object* Find(rm::Handle client, rm::Handle handle);
  // A duplicate of the open file that `client` belongs to (RM takes a client's requests on that one only).
  // Empty: there is none, or the program has closed ours.
  UniqueFd OpenFile(rm::Handle client) const;
  bool complete() const { return complete_; }

 private:
  // Programs that close all descriptors they do not know close ours, and the number may then be anybody's.
  struct ClientFile {
    rm::Handle client;
    int fd;
    dev_t device;
    ino_t inode;

    bool StillOurs() const;
    void Close() const;
  };

  bool Add(const Object& object, int fd);
  bool Remove(rm::Handle client, rm::Handle handle);
  void KeepFile(rm::Handle client, int fd);
  void DropFile(rm::Handle client);

  Array<Object> objects_;
  Array<ClientFile> files_;
  bool complete_ = true;
};

}  // namespace xsched::cuda
