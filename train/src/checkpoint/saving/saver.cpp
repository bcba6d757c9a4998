#include "checkpoint/saving/saver.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "checkpoint/saving/file_stream.hpp"
#include "checkpoint/saving/save_in_flight.hpp"
#include "checkpoint/saving/storage.hpp"
#include "collective/broadcast_text.hpp"
#include "files/errors.hpp"
#include "files/pending_file.hpp"
#include "log/log.hpp"

namespace troupe::train {
namespace fs = std::filesystem;
namespace {

/// The training has gone on, or has ended.
constexpr auto* kGivenUp = "it was given up";

constexpr std::size_t kBetweenLooks = std::size_t{64} << 20;

/// Passes files on until the save is given up, which is an error then.
class UntilGivenUp final : public FileSink {
 public:
  UntilGivenUp(FileSink& sink, const SaveInFlight& save) : sink_(sink), save_(save) {}
  void begin(const std::string& name) override { sink_.begin(name); }
  void write(const void* bytes, std::size_t count) override {
    const auto* next = static_cast<const std::byte*>(bytes);
    for (std::size_t at = 0; at < count; at += kBetweenLooks) {
      if (save_.is_given_up())
        throw Error(Failure{.kind = Failure::Kind::Unknown, .message = kGivenUp});
      sink_.write(next + at, std::min(kBetweenLooks, count - at));
    }
  }
  void end() override { sink_.end(); }

 private:
  FileSink& sink_;
  const SaveInFlight& save_;
};

}  // namespace

Saver::Saver(fs::path storage, std::unique_ptr<Communicator> between,
             std::chrono::milliseconds timeout)
    : wanted_(std::move(storage)), between_(std::move(between)), timeout_(timeout) {}

Saver::~Saver() {
  if (thread_.joinable()) thread_.join();
}

void Saver::finish() {
  if (!in_flight_) return;
  const auto save = in_flight_;
  save->wait_for_end();
  thread_.join();
  in_flight_.reset();
}

void Saver::abort(std::string_view reason) {
  if (in_flight_) in_flight_->give_up();
  if (between_) between_->abort(reason);
}

/// On all ranks, where rank 0 cannot have it: no checkpoint will ever be written.
void Saver::open_storage() {
  std::string error;
  try {
    if (is_first()) storage_ = std::make_unique<CheckpointStorage>(wanted_);
  } catch (const Error& failed) {
    error = failed.what();
  }
  if (between_) error = broadcast_text(*between_, std::move(error));
  if (!error.empty()) throw Error(Failure{.kind = Failure::Kind::Unknown, .message = error});
  has_storage_ = true;
  if (storage_) tell_storage();
}

void Saver::tell_storage() const {
  if (storage_->folder() == wanted_) return;
  log::warn(fmt::format("another run writes its checkpoints to {}: those of this run go to {}",
                        in_words(wanted_), in_words(storage_->folder())));
}

/// Makes the directory of the next checkpoint. -> why it could not
std::string Saver::open_directory() {
  try {
    if (!storage_->is_there()) {  // somebody has removed it
      storage_ = std::make_unique<CheckpointStorage>(wanted_);
      tell_storage();
    }
    pending_.emplace(storage_->folder(), storage_->is_locked());
    return {};
  } catch (const Error& error) {
    pending_.reset();
    return error.what();
  }
}

void Saver::give_up(SaveInFlight& save, const std::string& why) {
  pending_.reset();
  log::warn(
      fmt::format("a checkpoint was not written: {}; the training goes on, and the last "
                  "checkpoint is {}",
                  why, last_.empty() ? "none of this run" : in_words(last_)));
  save.set_done({.directory = {}, .error = why});
}

std::shared_ptr<SaveInFlight> Saver::begin(RankShare share) {
  finish();
  if (!has_storage_) open_storage();
  auto save = std::make_shared<SaveInFlight>(is_first(), timeout_);
  std::string error;
  if (is_first()) error = open_directory();
  std::string folder = pending_ ? pending_->folder().string() : "";
  if (between_) {
    error = broadcast_text(*between_, std::move(error));
    folder = broadcast_text(*between_, std::move(folder));
  }
  if (!error.empty()) {
    if (is_first())
      give_up(*save, error);
    else
      save->set_done({});
    return save;
  }
  thread_ = std::thread([this, save, share = std::move(share), folder]() mutable {
    try {
      if (is_first())
        write_first(*save, std::move(share));
      else
        write_other(*save, std::move(share), folder);
    } catch (const std::exception&) {
      pending_.reset();
      save->set_broken(std::current_exception());
    }
  });
  in_flight_ = save;
  return save;
}

/// This rank's files. The memory of their values is given back. -> why they were not written
std::string Saver::write_files(const SaveInFlight& save, RankShare& share, FileSink& sink) {
  UntilGivenUp until(sink, save);
  try {
    share.manifest.files = train::write_files(std::exchange(share.files, {}), until);
    return save.is_given_up() ? kGivenUp : "";
  } catch (const GangBroken&) {
    throw;
  } catch (const TimedOut&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

void Saver::write_other(SaveInFlight& save, RankShare share, const fs::path& folder) {
  std::error_code ignored;  // nobody else has a folder of that name
  auto sink = fs::is_directory(folder, ignored) ? sink_in(folder) : sink_to_first(*between_);
  RankOutcome outcome{.manifest = {}, .error = write_files(save, share, *sink)};
  // It removes the file that it did not come to the end of. Rank 0 removes the folder once it has
  // the outcome, and would leave it there if a file in it went away meanwhile.
  sink.reset();
  try {
    if (outcome.error.empty()) outcome.manifest = print_manifest(share.manifest);
  } catch (const std::exception& error) {  // a name that is not UTF-8
    outcome.error = error.what();
  }
  save.set_written();
  send_outcome(*between_, outcome);
  save.set_done({});
}

/// Adds what another rank has written. -> what is wrong with that
std::string Saver::take(Manifest& manifest, int rank, const RankOutcome& outcome) {
  if (!outcome.error.empty()) return fmt::format("rank {}: {}", rank, outcome.error);
  try {
    merge(manifest, parse_manifest(outcome.manifest));
    return {};
  } catch (const std::exception&) {
    return fmt::format("rank {} gave ctx.checkpoint other models or optimizers than rank 0", rank);
  }
}

void Saver::write_first(SaveInFlight& save, RankShare share) {
  const auto sink = sink_in(pending_->folder());
  auto error = write_files(save, share, *sink);
  save.set_written();
  for (int rank = 1; between_ && rank < between_->size(); ++rank) {
    const auto wrong = take(share.manifest, rank, receive(*between_, rank, *sink));
    if (error.empty()) error = wrong;
  }
  try {
    if (error.empty() && save.is_given_up()) error = kGivenUp;
    if (error.empty()) {
      last_ = commit(share.manifest);
      save.set_done({.directory = last_, .error = {}});
    }
  } catch (const std::exception& failed) {
    error = failed.what();
  }
  if (!error.empty()) give_up(save, error);
}

fs::path Saver::commit(const Manifest& manifest) {
  check_complete(manifest);
  for (const auto& [name, file] : manifest.files) {
    std::error_code error;
    if (fs::file_size(pending_->file(name), error) != file.bytes)
      not_done(in_words(pending_->file(name)), "it was removed or changed while it was written");
  }
  const auto text = print_manifest(manifest);
  PendingFile file(pending_->file(kManifestName));
  file.write(text.data(), text.size());
  file.commit();
  auto committed = pending_->commit();
  pending_.reset();
  return committed;
}

}  // namespace troupe::train
