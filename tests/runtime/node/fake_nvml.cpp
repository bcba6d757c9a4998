// Three GPUs as NVIDIA's management library would show them, the second of which has fallen off the
// bus.
#include <cstdio>

extern "C" {
struct Memory {
  unsigned long long total, free, used;
};
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int devices[3] = {0, 1, 2};
  *device = &devices[index];
  return index == 1 ? 15 : 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%d%d", *static_cast<int*>(device), *static_cast<int*>(device));
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Test GPU");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80'000'000'000, 1, 2};
  return 0;
}
}
