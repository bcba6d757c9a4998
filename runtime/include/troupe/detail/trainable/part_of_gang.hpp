#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/gang_context.hpp>
#include <troupe/rendezvous.hpp>

namespace troupe::detail {

/// A rank's gang with a part of its rendezvous: each key gets a prefix. Keys are written once, so
/// what happens several times in one gang (a run, a context with its communicators) would else meet
/// the keys of an earlier time. All else is the whole gang's, which outlives it. Any thread may call.
class PartOfGang : public GangContext {
 public:
  /// `prefix`: the same on every rank, and no beginning of another part's.
  PartOfGang(GangContext& whole, std::string prefix)
      : whole_(whole), rendezvous_(whole, std::move(prefix)) {}

  std::uint64_t id() const override { return whole_.id(); }
  int rank() const final { return whole_.rank(); }
  int size() const final { return whole_.size(); }
  int local_rank() const final { return whole_.local_rank(); }
  int local_size() const final { return whole_.local_size(); }
  int node_rank() const final { return whole_.node_rank(); }
  int node_count() const final { return whole_.node_count(); }
  std::vector<int> node_ranks() const final { return whole_.node_ranks(); }
  std::uint32_t node() const final { return whole_.node(); }
  std::string host() const final { return whole_.host(); }
  Rendezvous& rendezvous() final { return rendezvous_; }
  const std::atomic<std::uint32_t>& broken() const final { return whole_.broken(); }
  Failure why_broken() const final { return whole_.why_broken(); }
  std::shared_ptr<void> on_broken(std::function<void()> then) final {
    return whole_.on_broken(std::move(then));
  }

 private:
  class Part final : public Rendezvous {
   public:
    Part(GangContext& gang, std::string prefix) : gang_(gang), prefix_(std::move(prefix)) {}

    void set(std::string_view key, std::string_view value) override {
      gang_.rendezvous().set(whole(key), value);
    }
    std::string get(std::string_view key, std::chrono::milliseconds timeout) override {
      return gang_.rendezvous().get(whole(key), timeout);
    }
    void advance(std::string_view counter, std::uint64_t count, std::string_view note) override {
      gang_.rendezvous().advance(whole(counter), count, note);
    }
    std::string await(std::string_view counter, std::uint64_t count,
                      std::chrono::milliseconds timeout) override {
      return gang_.rendezvous().await(whole(counter), count, timeout);
    }
    void forget(std::string_view prefix) override { gang_.rendezvous().forget(whole(prefix)); }

   private:
    std::string whole(std::string_view key) const { return std::string(prefix_).append(key); }

    GangContext& gang_;
    const std::string prefix_;
  };

  GangContext& whole_;
  Part rendezvous_;
};

}  // namespace troupe::detail
