#include "wave.h"

#include <atomic>
#include <cstring>

#include "newer_kfd.h"

namespace standin_amdgpu {
namespace {

constexpr unsigned char kLost = 0xa5;
constexpr uint32_t kControlStackOfWave = 8;

std::atomic<uint64_t> saves{0};
std::atomic<uint64_t> restores{0};

// Registers and LDS are saved behind the control stack, which grows towards the header.
unsigned char* SavedRegisters(const kfd_ioctl_create_queue_args& queue) {
  return reinterpret_cast<unsigned char*>(queue.ctx_save_restore_address) + queue.ctl_stack_size;
}

SaveAreaHeader* Header(const kfd_ioctl_create_queue_args& queue) {
  return reinterpret_cast<SaveAreaHeader*>(queue.ctx_save_restore_address);
}

}  // namespace

bool Wave::Step() {
  if (step_(registers_.data(), arguments_) != 0) return true;
  step_ = nullptr;
  return false;
}

void Wave::Save(const kfd_ioctl_create_queue_args& queue) {
  if (!runs()) return;
  std::memcpy(SavedRegisters(queue), registers_.data(), registers_.size());
  registers_.fill(kLost);
  SaveAreaHeader* header = Header(queue);
  header->control_stack_offset = queue.ctl_stack_size - kControlStackOfWave;
  header->control_stack_size = kControlStackOfWave;
  header->wave_state_offset = queue.ctl_stack_size;
  header->wave_state_size = STANDIN_AMDGPU_STATE_SIZE;
  ++saves;
}

void Wave::Restore(const kfd_ioctl_create_queue_args& queue) {
  if (!runs()) return;
  std::memcpy(registers_.data(), SavedRegisters(queue), registers_.size());
  SaveAreaHeader* header = Header(queue);
  header->control_stack_size = header->wave_state_size = 0;
  ++restores;
}

const void* Wave::SavedIn(const kfd_ioctl_create_queue_args& queue) {
  return Header(queue)->wave_state_size == 0 ? nullptr : SavedRegisters(queue);
}

}  // namespace standin_amdgpu

uint64_t standin_amdgpu_saves() { return standin_amdgpu::saves; }
uint64_t standin_amdgpu_restores() { return standin_amdgpu::restores; }
