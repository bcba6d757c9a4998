// NCCL's functions that make and end communicators.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <nccl.h>
#include <sys/random.h>

#include "support/nccl_double/communicator.hpp"
#include "support/nccl_double/device.hpp"

namespace nccl_double {
namespace {

std::atomic<int> handles{0};

}  // namespace

int communicators() { return handles; }

}  // namespace nccl_double

using namespace nccl_double;

ncclComm::ncclComm(std::shared_ptr<Comm> what) : it(std::move(what)) { ++handles; }
ncclComm::~ncclComm() {
  it->end();
  --handles;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::uint64_t name = 0;
  if (::getrandom(&name, sizeof name, 0) != sizeof name) return ncclSystemError;
  std::memcpy(id->internal, &name, sizeof name);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  if (config == nullptr || config->blocking != 0) return ncclInvalidUsage;
  if (enter() != cudaSuccess) return ncclUnhandledCudaError;
  std::uint64_t name = 0;
  std::memcpy(&name, id.internal, sizeof name);
  *comm = new ncclComm(std::make_shared<Comm>(name, rank, ranks, current_device()));
  return (*comm)->it->begin_init();
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part,
                           ncclConfig_t* config) {
  if (config == nullptr || config->blocking != 0) return ncclInvalidUsage;
  return comm->it->begin_split(color, key, part);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm == nullptr) return ncclInvalidArgument;
  *state = comm->it->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return comm->it->begin_finalize(); }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->it->is_finalized() || comm->it->state() != ncclSuccess) return ncclInvalidUsage;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : comm->it->last_error();
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
