#include "hal/cuda/channel_groups/object_table.h"

#include <fcntl.h>

#include <utility>

#include "base/guarded_fd.h"

namespace xsched::cuda {
namespace {

bool Wanted(uint32_t c) {
  return c == rm::kDeviceClass || c == rm::kSubdeviceClass || c == rm::kChannelGroupClass ||
         rm::IsChannel(c) || rm::IsCompute(c);
}

bool MakesGroups(uint32_t c) { return c == rm::kChannelGroupClass || rm::IsChannel(c) || rm::IsCompute(c); }

}  // namespace

bool ObjectTable::Apply(const rm::Event& event, int fd) {
  switch (event.kind) {
    case rm::Event::Kind::kNone:
      return false;
    case rm::Event::Kind::kAllocated:
      // A client's handle may be reused after the driver closed its file without freeing anything.
      if (rm::IsClient(event.object_class)) return Remove(event.object, event.object);
      return Add({.client = event.client,
                  .parent = event.parent,
                  .handle = event.object,
                  .object_class = event.object_class,
                  .instance = event.instance},
                 fd);
    case rm::Event::Kind::kShared: {
      const Object* source = Find(event.source_client, event.source);
      if (source == nullptr) return false;
      Object object = *source;
      object.client = event.client;
      object.parent = event.parent;
      object.handle = event.object;
      return Add(object, fd);
    }
    case rm::Event::Kind::kFreed:
      return Remove(event.client, event.object);
    case rm::Event::Kind::kScheduled: {
      Object* object = Find(event.client, event.object);
      if (object == nullptr) return false;
      object->scheduled = event.on;
      return true;
    }
    case rm::Event::Kind::kTimesliceSet:
      return Find(event.client, event.object) != nullptr;
  }
  return false;
}

bool ObjectTable::Add(const Object& object, int fd) {
  if (!Wanted(object.object_class)) return false;
  // The handle is reused, so the old object was freed in a way that we did not see.
  Remove(object.client, object.handle);
  if (objects_.size() >= kMaxObjects || !objects_.Push(object)) {
    complete_ = false;
    return false;
  }
  KeepFile(object.client, fd);
  return MakesGroups(object.object_class);
}

// Moves the removed objects to the end of the array. There they are also the list of parents to check.
bool ObjectTable::Remove(rm::Handle client, rm::Handle handle) {
  size_t live = objects_.size();
  auto take_all = [&](auto&& goes) {
    for (size_t i = 0; i < live;) {
      if (objects_[i].client == client && goes(objects_[i])) {
        std::swap(objects_[i], objects_[--live]);
      } else {
        ++i;
      }
    }
  };
  take_all([&](const Object& object) {
    return object.handle == handle || object.parent == handle || client == handle;
  });
  for (size_t next = objects_.size(); next-- > live;) {
    const rm::Handle parent = objects_[next].handle;
    take_all([&](const Object& object) { return object.parent == parent; });
  }
  bool groups = false;
  while (objects_.size() > live) {
    groups |= MakesGroups(objects_.back().object_class);
    objects_.Pop();
  }
  if (client == handle) DropFile(client);
  return groups;
}

void ObjectTable::Clear() {
  objects_.Clear();
  for (const ClientFile& file : files_) file.Close();
  files_.Clear();
  complete_ = true;
}

Object* ObjectTable::Find(rm::Handle client, rm::Handle handle) {
  for (Object& object : objects_) {
    if (object.client == client && object.handle == handle) return &object;
  }
  return nullptr;
}

int ObjectTable::Use(rm::Handle client) {
  for (ClientFile& file : files_) {
    if (file.client != client || file.dropped || !file.StillOurs()) continue;
    ++file.users;
    return file.fd;
  }
  return -1;
}

void ObjectTable::Release(int fd) {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].fd != fd || files_[i].users == 0) continue;
    --files_[i].users;
    if (files_[i].dropped) CloseIfUnused(i);
    return;
  }
}

void ObjectTable::KeepFile(rm::Handle client, int fd) {
  for (const ClientFile& file : files_) {
    if (file.client != client || file.dropped) continue;
    if (file.StillOurs()) return;
    DropFile(client);
    break;
  }
  struct stat info {};
  if (files_.size() >= kMaxClients || fstat(fd, &info) != 0) return;
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, GuardedFd::LowestNumber()));
  if (copy && files_.Push({.client = client, .fd = copy.get(), .device = info.st_dev, .inode = info.st_ino}))
    copy.Release();
}

void ObjectTable::DropFile(rm::Handle client) {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i].client != client || files_[i].dropped) continue;
    files_[i].dropped = true;
    return CloseIfUnused(i);
  }
}

void ObjectTable::CloseIfUnused(size_t index) {
  if (files_[index].users != 0) return;
  files_[index].Close();
  files_.RemoveUnordered(index);
}

bool ObjectTable::ClientFile::StillOurs() const {
  struct stat info {};
  return fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode;
}

void ObjectTable::ClientFile::Close() const {
  if (StillOurs()) close(fd);
}

}  // namespace xsched::cuda
