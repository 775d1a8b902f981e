// The objects that the process's driver has allocated from the resource manager, as far as channel groups
// need them: devices, subdevices, channel groups, channels and compute objects, and the open file of each
// client.
//
//   client ── device ─┬─ subdevice                      (for questions about the GPU)
//                     └─ channel group ── channel ── compute object
//
// Bounded: objects that do not fit are left out, and the table remembers that some are missing. Not
// thread-safe. It makes no request to RM.
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
  bool scheduled = false;          // of a channel or a group: the driver has put it on the hardware's list
  XDevice address = 0;             // of a device, after the first request for it; 0: not known
};

class ObjectTable {
 public:
  static constexpr size_t kMaxObjects = 8192;
  static constexpr size_t kMaxClients = 256;

  constexpr ObjectTable() = default;
  ~ObjectTable() { Clear(); }

  // `fd`: the descriptor of the request. True: channel groups were made, freed or changed.
  bool Apply(const rm::Event& event, int fd);
  void Clear();

  std::span<const Object> objects() const { return objects_; }
  // Null: not there.
  Object* Find(rm::Handle client, rm::Handle handle);
  // The descriptor of the open file of `client`: RM accepts a client's requests only on that file. It stays
  // open until Release, also if the client is freed meanwhile. No duplicate for each request: where the
  // process may open no file any more, nothing could be given back. -1: there is none, or the program has
  // closed it.
  int Use(rm::Handle client);
  void Release(int fd);
  bool complete() const { return complete_; }

 private:
  // Some programs close all descriptors that they do not know, also ours. Then the number may be reused.
  struct ClientFile {
    rm::Handle client;
    int fd;
    dev_t device;
    ino_t inode;
    int users = 0;
    bool dropped = false;  // the last user closes it

    bool StillOurs() const;
    void Close() const;
  };

  bool Add(const Object& object, int fd);
  bool Remove(rm::Handle client, rm::Handle handle);
  void KeepFile(rm::Handle client, int fd);
  void DropFile(rm::Handle client);
  void CloseIfUnused(size_t index);

  Array<Object> objects_;
  Array<ClientFile> files_;
  bool complete_ = true;
};

}  // namespace xsched::cuda
