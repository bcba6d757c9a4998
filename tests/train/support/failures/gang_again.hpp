#pragma once

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

namespace troupe::testing {

/// The ranks of a gang as another gang, whose rendezvous is empty: for the next of many contexts in
/// the same processes, each of which makes communicators of the same names.
class GangAgain final : public GangContext {
 public:
  /// `number`: another one each time, the same on all ranks.
  GangAgain(GangContext& whole, std::uint64_t number)
      : whole_(whole),
        number_(number),
        rendezvous_(whole.rendezvous(), "again " + std::to_string(number) + " ") {}

  std::uint64_t id() const override { return whole_.id() + number_; }
  int rank() const override { return whole_.rank(); }
  int size() const override { return whole_.size(); }
  int local_rank() const override { return whole_.local_rank(); }
  int local_size() const override { return whole_.local_size(); }
  int node_rank() const override { return whole_.node_rank(); }
  int node_count() const override { return whole_.node_count(); }
  std::vector<int> node_ranks() const override { return whole_.node_ranks(); }
  std::uint32_t node() const override { return whole_.node(); }
  std::string host() const override { return whole_.host(); }
  Rendezvous& rendezvous() override { return rendezvous_; }
  const std::atomic<std::uint32_t>& broken() const override { return whole_.broken(); }
  Failure why_broken() const override { return whole_.why_broken(); }
  std::shared_ptr<void> on_broken(std::function<void()> then) override {
    return whole_.on_broken(std::move(then));
  }

 private:
  class Part final : public Rendezvous {
   public:
    Part(Rendezvous& whole, std::string prefix) : whole_(whole), prefix_(std::move(prefix)) {}
    void set(std::string_view key, std::string_view value) override { whole_.set(in(key), value); }
    std::string get(std::string_view key, std::chrono::milliseconds timeout) override {
      return whole_.get(in(key), timeout);
    }
    void advance(std::string_view counter, std::uint64_t count, std::string_view note) override {
      whole_.advance(in(counter), count, note);
    }
    std::string await(std::string_view counter, std::uint64_t count,
                      std::chrono::milliseconds timeout) override {
      return whole_.await(in(counter), count, timeout);
    }
    void forget(std::string_view prefix) override { whole_.forget(in(prefix)); }

   private:
    std::string in(std::string_view key) const { return prefix_ + std::string(key); }

    Rendezvous& whole_;
    const std::string prefix_;
  };

  GangContext& whole_;
  const std::uint64_t number_;
  Part rendezvous_;
};

}  // namespace troupe::testing
