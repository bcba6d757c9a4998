#include <troupe/train.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <torch/optim/adam.h>
#include <unistd.h>

#include "core/harness.hpp"
#include "train/gpus.hpp"
#include "train/training.hpp"

/// How fast a checkpoint of a model with Adam is written and read: with the whole of all on each
/// rank (ZeRO's stage 0), and with each rank's part (stage 3); how long the training stands still
/// where the checkpoint is written while it goes on; and what the disk takes and gives by itself.
/// `./run bench train --peer` runs torch.distributed.checkpoint beside it.
///
///   checkpoint_bench [ranks] [--json] [--smoke]
///
/// The files are in the folder of temporary files, TMPDIR. They are read from the memory in which
/// the system keeps what was written.
namespace {

namespace fs = std::filesystem;
using troupe::bench::Clock;
using troupe::bench::seconds_since;
using troupe::bench::Training;

struct Saved {
  double save_s = 0;   ///< ctx.checkpoint
  double begin_s = 0;  ///< ctx.begin_checkpoint: so long the training stands still
  double wait_s = 0;   ///< until it is committed
};

/// Deletes the checkpoints before, on rank 0.
void keep_alone(const troupe::train::Checkpoint& checkpoint) {
  if (!checkpoint.error.empty()) throw std::runtime_error(checkpoint.error);
  if (checkpoint.directory.empty()) return;
  for (const auto& entry : fs::directory_iterator(checkpoint.directory.parent_path())) {
    const bool is_one = entry.is_directory();  // and not the lock of the storage
    if (is_one && entry.path() != checkpoint.directory) fs::remove_all(entry.path());
  }
}

/// Of Adam with a model, after one step.
Saved save(troupe::train::Context& ctx, const Training& training) {
  return troupe::bench::with_model(ctx, training, [&](const auto& make_net, const auto& loss) {
    auto net = make_net();
    ctx.prepare(net);
    auto optimizer = ctx.prepare(torch::optim::Adam(net->parameters(), 1e-5));
    loss(net).backward();
    optimizer.step();
    Saved best{1e9, 1e9, 1e9};
    for (int round = 0; round < training.rounds; ++round) {
      ctx.communicator().barrier();
      auto began = Clock::now();
      const auto first = ctx.checkpoint(net, optimizer);
      ctx.communicator().barrier();
      best.save_s = std::min(best.save_s, seconds_since(began));
      keep_alone(first);
      began = Clock::now();
      const auto saving = ctx.begin_checkpoint(net, optimizer);
      ctx.communicator().barrier();
      best.begin_s = std::min(best.begin_s, seconds_since(began));
      const auto saved = saving.wait();
      best.wait_s = std::min(best.wait_s, seconds_since(began));
      keep_alone(saved);
    }
    return best;
  });
}

/// -> the seconds that the preparing takes.
double load(troupe::train::Context& ctx, const Training& training) {
  return troupe::bench::with_model(ctx, training, [&](const auto& make_net, const auto&) {
    auto net = make_net();
    ctx.communicator().barrier();
    const auto began = Clock::now();
    ctx.prepare(net);
    auto optimizer = ctx.prepare(torch::optim::Adam(net->parameters(), 1e-5));
    ctx.communicator().barrier();
    return seconds_since(began);
  });
}

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) bytes += entry.file_size();
  return bytes;
}

/// -> the seconds that as many bytes take to be written to a file and made durable.
double disk_write_s(const fs::path& folder, std::uintmax_t bytes) {
  const std::vector<char> part(1 << 20, 'x');
  const auto file = folder / "by_itself";
  const auto began = Clock::now();
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  for (std::uintmax_t written = 0; written < bytes; written += part.size()) {
    if (::write(out, part.data(), part.size()) < 0) std::abort();
  }
  if (::fsync(out) != 0) std::abort();
  ::close(out);
  const auto took = seconds_since(began);
  fs::remove(file);
  return took;
}

void print(bool json_only, const std::string& model, int ranks, const std::string& how,
           std::uintmax_t bytes, double seconds) {
  const auto rate = static_cast<double>(bytes) / seconds / 1e9;
  if (!json_only)
    std::printf("%-26s  %-24s %7.3f s  %6.2f GB/s\n", model.c_str(), how.c_str(), seconds, rate);
  std::printf(
      "{\"bench\":\"checkpoint\",\"ranks\":%d,\"model\":\"%s\",\"how\":\"%s\",\"gb_per_s\":%.3f}\n",
      ranks, model.c_str(), how.c_str(), rate);
}

}  // namespace

int main(int argc, char** argv) {
  const auto [arguments, cluster] = troupe::bench::begin_training_bench(
      "How fast a checkpoint is written and read.", "", argc, argv);
  const auto [ranks, gpus, json_only, smoke] = arguments;
  auto folder = (fs::temp_directory_path() / "troupe-checkpoint-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  auto cases = troupe::bench::cases_of(arguments);
  if (!smoke) cases.erase(cases.begin(), cases.end() - 1);  // the others are written at once
  for (const auto& [name, training] : cases) {
    double disk_s = 1e9;
    for (const int stage : {0, 3}) {
      const auto storage = fs::path(folder) / std::to_string(stage);
      troupe::train::RunOptions options{.workers = ranks,
                                        .each = troupe::bench::rank_options(ranks, gpus),
                                        .storage = storage,
                                        .context = {.zero = {.stage = stage}}};
      const auto saved = *troupe::train::run<save>(training, options).value;
      options.restore_from = troupe::train::latest_checkpoint(storage);
      const auto bytes = bytes_in(options.restore_from);
      double load_s = 1e9;
      for (int round = 0; round < training.rounds; ++round) {
        load_s = std::min(load_s, *troupe::train::run<load>(training, options).value);
        disk_s = std::min(disk_s, disk_write_s(folder, bytes));
      }
      const std::string suffix = stage == 0 ? "" : ", zero 3";
      print(json_only, name, ranks, "save" + suffix, bytes, saved.save_s);
      print(json_only, name, ranks, "stall" + suffix, bytes, saved.begin_s);
      print(json_only, name, ranks, "save behind" + suffix, bytes, saved.wait_s);
      print(json_only, name, ranks, "load" + suffix, bytes, load_s);
      if (stage != 0) print(json_only, name, ranks, "disk", bytes, disk_s);
      fs::remove_all(storage);
    }
  }
  fs::remove_all(folder);
}
