#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <troupe/gang_context.hpp>

namespace troupe::detail {

/// The gang as one of several runs that follow one another in it sees it: the same ranks, with a
/// part of the rendezvous for this run alone. Keys are written once, so a communicator or a verdict
/// of this run would else meet the keys of an earlier run. Its owner is the run; the whole gang
/// outlives it.
class RunGang final : public GangContext, public Rendezvous {
 public:
  /// `run`: the same on every rank, and another for each run of the gang. Rank 0 forgets what the
  /// run before kept: every rank has left that one before any begins this one.
  RunGang(GangContext& whole, std::uint32_t run) : whole_(whole), prefix_(prefix_of(run)) {
    if (rank() == 0 && size() > 1) whole_.rendezvous().forget(prefix_of(run - 1));
  }

  std::uint64_t id() const override { return whole_.id(); }
  int rank() const override { return whole_.rank(); }
  int size() const override { return whole_.size(); }
  int local_rank() const override { return whole_.local_rank(); }
  int local_size() const override { return whole_.local_size(); }
  int node_rank() const override { return whole_.node_rank(); }
  int node_count() const override { return whole_.node_count(); }
  std::vector<int> node_ranks() const override { return whole_.node_ranks(); }
  std::uint32_t node() const override { return whole_.node(); }
  std::string host() const override { return whole_.host(); }
  Rendezvous& rendezvous() override { return *this; }
  const std::atomic<std::uint32_t>& broken() const override { return whole_.broken(); }
  Failure why_broken() const override { return whole_.why_broken(); }
  std::shared_ptr<void> on_broken(std::function<void()> then) override {
    return whole_.on_broken(std::move(then));
  }

  void set(std::string_view key, std::string_view value) override {
    whole_.rendezvous().set(own(key), value);
  }
  std::string get(std::string_view key, std::chrono::milliseconds timeout) override {
    return whole_.rendezvous().get(own(key), timeout);
  }
  void advance(std::string_view counter, std::uint64_t count, std::string_view note) override {
    whole_.rendezvous().advance(own(counter), count, note);
  }
  std::string await(std::string_view counter, std::uint64_t count,
                    std::chrono::milliseconds timeout) override {
    return whole_.rendezvous().await(own(counter), count, timeout);
  }
  void forget(std::string_view prefix) override { whole_.rendezvous().forget(own(prefix)); }

 private:
  static std::string prefix_of(std::uint32_t run) { return fmt::format("run {}/", run); }
  std::string own(std::string_view key) const { return std::string(prefix_).append(key); }

  GangContext& whole_;
  const std::string prefix_;
};

}  // namespace troupe::detail
