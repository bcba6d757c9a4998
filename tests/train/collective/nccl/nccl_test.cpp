#include <troupe/train/communicator.hpp>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "support/forked_gang.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// Asked in a child: a process that has touched CUDA must not fork ranks that use it.
int devices_here() {
  const auto child = ::fork();
  if (child == 0) {
    int count = 0;
    ::_exit(cudaGetDeviceCount(&count) == cudaSuccess ? count : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

bool skipped() {
  if (devices_here() > 0) return false;
  WARN("skipped: no CUDA device is visible to this process");
  return true;
}

/// NCCL refuses two ranks of one host on one GPU; told that they are on different hosts, it
/// connects them by sockets.
NcclOptions share_one_gpu(const GangContext& gang) {
  ::setenv("NCCL_HOSTID", std::to_string(gang.rank()).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  return {.timeout = std::chrono::seconds(60), .device = 0};
}

void check_sum(Communicator& comm, std::size_t count) {
  std::vector<float> data(count, static_cast<float>(comm.rank() + 1));
  void* device = nullptr;
  expect(cudaMalloc(&device, count * sizeof(float)) == cudaSuccess, "device memory");
  cudaMemcpy(device, data.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  comm.all_reduce(device, count, DataType::Float32, ReduceOp::Average);
  cudaMemcpy(data.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost);
  for (float x : data)
    expect(x == static_cast<float>(comm.size() + 1) / 2, "the average of 1 .. size");
  cudaFree(device);
}

/// Whole numbers in device memory.
class Numbers {
 public:
  explicit Numbers(const std::vector<std::int32_t>& values) : count_(values.size()) {
    expect(cudaMalloc(&data_, bytes()) == cudaSuccess, "device memory");
    cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice);
  }
  ~Numbers() { cudaFree(data_); }
  Numbers(const Numbers&) = delete;
  void* data() const { return data_; }
  std::vector<std::int32_t> values() const {
    std::vector<std::int32_t> values(count_);
    cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(std::int32_t); }
  std::size_t count_;
  void* data_ = nullptr;
};

std::vector<std::int32_t> message(int from, int to, std::size_t count) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = from * 1'000'000 + to * 100'000 + static_cast<int>(i % 99'991);
  return values;
}

void check_message(Communicator& comm, std::size_t count) {
  Numbers data(message(comm.rank(), 1, count));
  if (comm.rank() == 0) comm.send(data.data(), count, DataType::Int32, 1);
  if (comm.rank() == 1) comm.recv(data.data(), count, DataType::Int32, 0);
  if (comm.rank() == 1) expect(data.values() == message(0, 1, count), "what rank 0 sent");
}

void check_all_to_all(Communicator& comm, std::size_t count) {
  std::vector<std::int32_t> parts, expected;
  for (int r = 0; r < comm.size(); ++r) {
    for (auto x : message(comm.rank(), r, count)) parts.push_back(x);
    for (auto x : message(r, comm.rank(), count)) expected.push_back(x);
  }
  const Numbers in(parts), out(std::vector<std::int32_t>(parts.size(), -1));
  comm.all_to_all(in.data(), out.data(), count, DataType::Int32);
  expect(out.values() == expected, "each rank's part of every other's");
}

}  // namespace

TEST_CASE("NCCL sends messages and deals out parts", "[train][collective][nccl][gpu]") {
  if (skipped()) return;
  auto gang = ForkedGang::on_one_node(2);
  gang.limit = std::chrono::seconds(100);
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_nccl_communicator(context, share_one_gpu(context));
          for (std::size_t count : {1, 1000, 300'007}) {
            check_message(*comm, count);
            check_all_to_all(*comm, count);
          }
          comm->barrier();
        })) == "");
}

TEST_CASE("NCCL splits a communicator", "[train][collective][nccl][gpu]") {
  if (skipped()) return;
  auto gang = ForkedGang::on_one_node(2);
  gang.limit = std::chrono::seconds(100);
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_nccl_communicator(context, share_one_gpu(context));
          auto turned = comm->split(0, -comm->rank());
          expect(turned->rank() == 1 - comm->rank() && turned->size() == 2, "the order of keys");
          check_all_to_all(*turned, 1000);
          auto alone = comm->split(comm->rank() == 0 ? Communicator::kNoColor : 3, 0);
          expect((alone == nullptr) == (comm->rank() == 0), "no communicator without a color");
          if (alone) check_sum(*alone, 10);
          check_sum(*comm, 1000);
        })) == "");
}

TEST_CASE("without a GPU the NCCL communicator says that there is none",
          "[train][collective][nccl]") {
  if (devices_here() > 0) {
    WARN("skipped: this process sees a CUDA device");
    return;
  }
  const auto outcomes =
      ForkedGang::on_one_node(1).run([](GangContext& gang) { make_nccl_communicator(gang); });
  CHECK(outcomes[0].type == "Impossible");
  CHECK_THAT(outcomes[0].message, Catch::Contains("no CUDA device is visible to this process: "));
}

TEST_CASE("NCCL reduces over one and two ranks of one GPU", "[train][collective][nccl][gpu]") {
  if (skipped()) return;
  const int ranks = GENERATE(1, 2);
  auto gang = ForkedGang::on_one_node(ranks);
  gang.limit = std::chrono::seconds(100);
  CHECK(failures(gang.run([](GangContext& context) {
          auto comm = make_nccl_communicator(context, share_one_gpu(context));
          for (std::size_t count : {1, 1000, 1'000'003}) check_sum(*comm, count);
          comm->barrier();
        })) == "");
}

TEST_CASE("a rank that is killed ends the others' NCCL call", "[train][collective][nccl][gpu]") {
  if (skipped()) return;
  auto gang = ForkedGang::on_one_node(2);
  gang.limit = std::chrono::seconds(100);
  const auto outcomes = gang.run([](GangContext& context) {
    auto comm = make_nccl_communicator(context, share_one_gpu(context));
    comm->barrier();
    if (context.rank() == 1) ::kill(::getpid(), SIGKILL);
    for (;;) comm->barrier();
  });
  INFO(outcomes[0].message);
  CHECK(outcomes[0].type == "GangBroken");
}
