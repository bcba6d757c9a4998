#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "../../support/guard.hpp"

#include <troupe/tune.hpp>

/// Members of populations that run in processes of their own. A member trains bytes, and reports
/// what it read and wrote.
namespace troupe::tune {

/// Of all bytes of a file, or of all files below a folder with their names. A double holds it
/// exactly, and the sum of many.
inline double digest_of(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](const std::string& bytes) {
    for (const char byte : bytes)
      digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file.string());
    add(std::filesystem::relative(file, path).string());
    add(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  return static_cast<double>(digest >> 16);
}

/// What a member trains, and what its checkpoints hold.
struct Weights {
  std::int64_t steps = 0;
  double score = 0;  ///< the sum of the learning rates of all steps
  std::array<std::uint64_t, 300> values = {};

  void train(double lr) {
    ++steps;
    score += lr;
    for (auto& value : values)
      value = value * 6364136223846793005 + std::bit_cast<std::uint64_t>(lr) + steps;
  }
};

inline void write_file(const std::filesystem::path& file, const void* bytes, std::size_t size) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

/// As one file, or as a folder with two files at different depths.
inline void write(const Weights& weights, const std::filesystem::path& path, bool as_folder) {
  write_file(as_folder ? path / "deep" / "weights" : path, &weights, sizeof weights);
  if (as_folder) write_file(path / "steps", &weights.steps, sizeof weights.steps);
}

inline Weights read_weights(const std::filesystem::path& path) {
  Weights weights;
  const bool is_folder = std::filesystem::is_directory(path);
  std::ifstream in(is_folder ? path / "deep" / "weights" : path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&weights), sizeof weights))
    throw std::runtime_error("cannot read " + path.string());
  return weights;
}

/// Waits for a file that another process makes. Throws where it does not come.
inline void wait_for_file(const std::filesystem::path& file) {
  const auto deadline = std::chrono::steady_clock::now() + test::kGuard;
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("waited in vain for " + file.string());
    usleep(1'000);
  }
}

inline void make_file(const std::filesystem::path& file) { std::ofstream{file}; }

/// Trials 0 to members - 1, all of which have places, train in step: none is more than a report
/// ahead of another.
struct InStep {
  int members = 0;  ///< 0: nobody waits for anybody
  std::string folder = {};
};

/// One attempt of a member, as a rank of its gang sees it. Every rank calls the same.
class MemberAttempt {
 public:
  /// Reads the checkpoint that the attempt goes on from.
  explicit MemberAttempt(Context& ctx, InStep in_step = {})
      : ctx_{ctx}, in_step_{std::move(in_step)} {
    weights_.values.fill(ctx.seed());
    if (!ctx.restore_from().empty()) {
      weights_ = read_weights(ctx.restore_from());
      read_ = digest_of(ctx.restore_from());
    }
    gather();
    for (std::int64_t step = 1; step <= weights_.steps; ++step) say_reported(step);
  }

  Context& ctx() { return ctx_; }
  bool goes_on() const { return !ctx_.restore_from().empty(); }
  std::int64_t steps() const { return weights_.steps; }
  /// Whether the trial has taken over another. Its storage is a folder in the one that it began
  /// with since then.
  bool has_taken_over() const { return storage().filename().string().starts_with("takeover-"); }
  TrialId trial() const {
    return std::stoull(
        (has_taken_over() ? storage().parent_path() : storage()).filename().string());
  }

  /// Trains a step, writes the checkpoint of it, and reports both. Odd trials write folders, even
  /// ones a file.
  Verdict step(double lr) {
    for (int other = 0; other < in_step_.members && weights_.steps > 0; ++other) {
      wait_for_file(reported(static_cast<TrialId>(other), weights_.steps));
    }
    weights_.train(lr);
    const auto checkpoint = ctx_.storage() / ("step-" + std::to_string(weights_.steps));
    double written = 0;
    if (ctx_.rank() == 0) {
      write(weights_, checkpoint, trial() % 2 == 1);
      written = digest_of(checkpoint);
    }
    const auto verdict = ctx_.report({{"score", weights_.score},
                                      {"steps", weights_.steps},
                                      {"lr", lr},
                                      {"read", read_},
                                      {"others_read", others_read_},
                                      {"written", written},
                                      {"pid", getpid()},
                                      {"last_pid", last_pid_},
                                      {"node", ctx_.gang().node()},
                                      {"last_node", last_node_}},
                                     checkpoint);
    say_reported(weights_.steps);
    return verdict;
  }

 private:
  std::filesystem::path storage() const { return ctx_.storage(); }
  std::string reported(TrialId trial, std::int64_t step) const {
    return in_step_.folder + "/trial-" + std::to_string(trial) + "-step-" + std::to_string(step);
  }
  void say_reported(std::int64_t step) const {
    if (in_step_.members > 0 && ctx_.rank() == 0) make_file(reported(trial(), step));
  }
  /// Rank 0 learns what the others have read, and who they are.
  void gather() {
    auto& gang = ctx_.gang();
    const auto key = [](const char* what, int rank) {
      return std::string(what) + "/" + std::to_string(rank);
    };
    const auto get = [&](const std::string& name) {
      return std::stod(gang.rendezvous().get(name, test::kGuard));
    };
    if (gang.rank() != 0) {
      gang.rendezvous().set(key("read", gang.rank()), std::to_string(read_));
      gang.rendezvous().set(key("pid", gang.rank()), std::to_string(getpid()));
      gang.rendezvous().set(key("node", gang.rank()), std::to_string(gang.node()));
      return;
    }
    const int last = gang.size() - 1;
    for (int rank = 1; rank <= last; ++rank) others_read_ += get(key("read", rank));
    last_pid_ = last == 0 ? getpid() : get(key("pid", last));
    last_node_ = last == 0 ? gang.node() : get(key("node", last));
  }

  Context& ctx_;
  const InStep in_step_;
  Weights weights_;
  double read_ = 0;         // digest of what it goes on from; 0: it starts anew
  double others_read_ = 0;  // the sum over the other ranks
  double last_pid_ = 0;     // of the last rank
  double last_node_ = 0;
};

}  // namespace troupe::tune
