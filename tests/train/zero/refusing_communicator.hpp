#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include <troupe/train/communicator.hpp>

namespace troupe::testing {

/// Of rank 0 of two, whose calls all throw as if rank 1 were gone, but for those that a derived
/// class makes.
class RefusingCommunicator : public train::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string_view name() const override { return "refusing"; }
  void barrier() override { refuse(); }
  void abort(std::string_view) override {}

 protected:
  using DataType = train::DataType;
  using ReduceOp = train::ReduceOp;

 private:
  [[noreturn]] static void refuse() { throw std::runtime_error("rank 1 is gone"); }
  void do_all_reduce(void*, std::size_t, DataType, ReduceOp) override { refuse(); }
  void do_broadcast(void*, std::size_t, DataType, int) override { refuse(); }
  void do_all_gather(const void*, void*, std::size_t, DataType) override { refuse(); }
  void do_all_gather_parts(const void*, void*, std::span<const std::size_t>, DataType) override {
    refuse();
  }
  void do_reduce(const void*, void*, std::size_t, DataType, ReduceOp, int) override { refuse(); }
  void do_gather(const void*, void*, std::size_t, DataType, int) override { refuse(); }
  void do_scatter(const void*, void*, std::size_t, DataType, int) override { refuse(); }
  void do_reduce_scatter(const void*, void*, std::size_t, DataType, ReduceOp) override { refuse(); }
  void do_all_to_all(const void*, void*, std::size_t, DataType) override { refuse(); }
  void do_send(const void*, std::size_t, DataType, int) override { refuse(); }
  void do_recv(void*, std::size_t, DataType, int) override { refuse(); }
  std::unique_ptr<Communicator> do_split(int, int) override { refuse(); }
};

}  // namespace troupe::testing
