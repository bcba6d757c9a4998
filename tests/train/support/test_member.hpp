#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <troupe/trainable.hpp>

namespace troupe::testing {

/// A rank of a run that nobody drives: reports are kept, and answered as told.
class TestMember final : public Member {
 public:
  explicit TestMember(GangContext& gang, std::filesystem::path storage = {},
                      std::filesystem::path restore_from = {}, ContextSettings settings = {})
      : gang_(gang),
        storage_(std::move(storage)),
        restore_from_(std::move(restore_from)),
        settings_(std::move(settings)) {}

  GangContext& gang() override { return gang_; }
  Verdict report(const Metrics& metrics, const std::filesystem::path& checkpoint) override {
    reports.push_back({metrics, checkpoint});
    return static_cast<int>(reports.size()) == stop_at ? Verdict::Stop : Verdict::Continue;
  }
  const std::filesystem::path& storage() const override { return storage_; }
  const std::filesystem::path& restore_from() const override { return restore_from_; }
  bool reconfigured() const override { return is_reconfigured; }
  std::uint64_t seed() const override { return run_seed; }
  const ContextSettings& settings() const override { return settings_; }

  struct Reported {
    Metrics metrics;
    std::filesystem::path checkpoint;
  };
  std::vector<Reported> reports;
  int stop_at = 0;               ///< the report, from 1, that is answered with Stop; 0: none
  std::uint64_t run_seed = 0;    ///< of the run
  bool is_reconfigured = false;  ///< it takes over a checkpoint with options of its own

 private:
  GangContext& gang_;
  std::filesystem::path storage_;
  std::filesystem::path restore_from_;
  ContextSettings settings_;
};

}  // namespace troupe::testing
