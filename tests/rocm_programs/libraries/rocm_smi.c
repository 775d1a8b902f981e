// As much of librocm_smi64 as RCCL asks for: the software agent's GPUs (tests/standin/hsa/agent.cc), with no
// link between them.
#include <stdint.h>
#include <stdlib.h>

enum { kSuccess = 0, kNotSupported = 2 };
enum { kFirstBus = 5 };

struct Version {
  uint32_t major, minor, patch;
  const char* build;
};

int rsmi_init(uint64_t flags) {
  (void)flags;
  return kSuccess;
}

int rsmi_num_monitor_devices(uint32_t* count) {
  const char* text = getenv("STANDIN_HSA_DEVICES");
  *count = text == NULL ? 1 : (uint32_t)atoi(text);
  return kSuccess;
}

// The bus is in bits 8 to 15.
int rsmi_dev_pci_id_get(uint32_t device, uint64_t* id) {
  *id = (kFirstBus + device) << 8;
  return kSuccess;
}

int rsmi_version_get(struct Version* version) {
  *version = (struct Version){7, 8, 0, "software"};
  return kSuccess;
}

int rsmi_dev_firmware_version_get(uint32_t device, int block, uint64_t* version) {
  (void)device;
  (void)block;
  *version = 0;
  return kSuccess;
}

int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t* hops, int* type) {
  (void)from;
  (void)to;
  *hops = 0;
  *type = 0;
  return kNotSupported;
}

int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t* weight) {
  (void)from;
  (void)to;
  *weight = 0;
  return kNotSupported;
}

int rsmi_status_string(int status, const char** text) {
  *text = status == kSuccess ? "success" : "not supported";
  return kSuccess;
}
