#include "parallel/averaging/reduction_queue.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/call.hpp"

namespace troupe::train {
namespace {

// A row, in words: these flags, then a bit for each model that has begun.
constexpr std::int32_t kEnded = 1;
constexpr std::int32_t kFailed = 2;
constexpr std::size_t kBits = 31;  // of a word: sums of one row and zeros stay positive
constexpr std::size_t kReasonBytes = 1024;

std::size_t words_for(std::size_t models) { return 1 + (models + kBits - 1) / kBits; }

}  // namespace

ReductionQueue::ReductionQueue(Communicator& control) : control_(control) {}

ReductionQueue::~ReductionQueue() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReductionQueue::check_closed() const {
  if (open_)
    throw std::logic_error(
        "a model is prepared while a backward runs: prepare all models before the first one");
}

std::size_t ReductionQueue::add(Reducible& model) {
  const Lock lock(mutex_);
  check_closed();
  models_.push_back({.reducible = &model});
  return models_.size() - 1;
}

void ReductionQueue::refuse_while_open() {
  const Lock lock(mutex_);
  check_closed();
}

void ReductionQueue::remove(std::size_t model) {
  const Lock lock(mutex_);
  models_[model].reducible = nullptr;
}

bool ReductionQueue::begin(std::size_t model) {
  const Lock lock(mutex_);
  models_[model].begun = true;
  return !std::exchange(open_, true);
}

// The last bucket of a model does not wake the thread: mostly nothing is left to overlap with, and
// so a small model needs no second thread.
void ReductionQueue::on_full(std::size_t model, std::size_t buckets) {
  const Lock lock(mutex_);
  models_[model].full = buckets;
  if (buckets == models_[model].reducible->buckets() && !awake_) return;
  awake_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { run_thread(); });
  changed_.notify_all();
}

void ReductionQueue::await_room(std::size_t model, std::size_t most) {
  Lock lock(mutex_);
  const auto& its = models_[model];
  changed_.wait(lock, [&] {
    return its.full <= its.reduced + most || !awake_ || ended_ || error_ || stopping_ ||
           !(busy_ || is_ready());
  });
}

void ReductionQueue::run_thread() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (awake_ && !ended_ && !error_); });
    if (stopping_) return;
    running_ = true;
    run_until_ended(lock);
    running_ = false;
    changed_.notify_all();
  }
}

void ReductionQueue::run_until_ended(Lock& lock) {
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || ended_ || error_ || is_ready(); });
    if (stopping_ || ended_ || error_) return;
    advance(lock);
  }
}

void ReductionQueue::run_to_the_end(Lock& lock) {
  ended_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !running_; });
  while (!error_ && !(ended_everywhere_ && agreed_.empty())) advance(lock);
  complete_reductions(lock);
  if (error_) std::rethrow_exception(error_);
}

void ReductionQueue::complete_reductions(Lock& lock) {
  auto error = error_;
  lock.unlock();
  for (const auto& model : models_) {
    if (!model.agreed) continue;
    try {
      if (!error) model.reducible->complete_reductions();
    } catch (...) {
      error = std::current_exception();
    }
    if (error) model.reducible->give_up_reductions();
  }
  lock.lock();
  error_ = error;
}

// Whether advance() need not wait for autograd.
bool ReductionQueue::is_ready() const {
  if (!agreed_.empty()) return models_[agreed_.front().model].full > agreed_.front().bucket;
  return std::any_of(models_.begin(), models_.end(),
                     [](auto& m) { return !m.agreed && m.full > 0; });
}

void ReductionQueue::advance(Lock& lock) {
  busy_ = true;
  take_step(lock);
  busy_ = false;
  changed_.notify_all();
}

void ReductionQueue::take_step(Lock& lock) {
  try {
    if (agreed_.empty()) return take_round(lock);
    const auto step = agreed_.front();
    agreed_.pop_front();
    auto& model = models_[step.model];
    const bool absent = ended_ && !model.begun && !failed_ && step.bucket == 0;
    lock.unlock();
    if (absent) model.reducible->fill_with_zeros();
    model.reducible->reduce(step.bucket);
    lock.lock();
    model.reduced = step.bucket + 1;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    error_ = std::current_exception();
  }
}

void ReductionQueue::take_round(Lock& lock) {
  const auto own = row();
  const auto ranks = static_cast<std::size_t>(control_.size());
  const auto me = static_cast<std::size_t>(control_.rank());
  // A sum in which each rank fills its own row: a gather that takes one phase.
  std::vector<std::int32_t> rows(ranks * own.size());
  std::copy(own.begin(), own.end(), rows.begin() + static_cast<std::ptrdiff_t>(me * own.size()));
  lock.unlock();
  control_.all_reduce(std::span(rows));
  lock.lock();
  rows_ = std::move(rows);
  ended_everywhere_ = true;
  for (std::size_t at = 0; at < rows_.size(); at += own.size())
    ended_everywhere_ = ended_everywhere_ && (rows_[at] & kEnded) != 0;
  for (auto model = models_.size(); model-- > 0;) {
    if (models_[model].agreed || ranks_that_began(model).empty()) continue;
    models_[model].agreed = true;
    for (std::size_t bucket = 0; bucket < models_[model].reducible->buckets(); ++bucket)
      agreed_.push_back({model, bucket});
  }
}

std::vector<std::int32_t> ReductionQueue::row() const {
  std::vector<std::int32_t> row(words_for(models_.size()));
  row[0] = (ended_ ? kEnded : 0) | (failed_ ? kFailed : 0);
  for (std::size_t m = 0; m < models_.size(); ++m) {
    if (models_[m].begun) row[1 + m / kBits] |= 1 << (m % kBits);
  }
  return row;
}

std::vector<int> ReductionQueue::ranks_that_began(std::size_t model) const {
  const auto words = words_for(models_.size());
  std::vector<int> ranks;
  for (std::size_t at = 0; at < rows_.size(); at += words) {
    if ((rows_[at + 1 + model / kBits] >> (model % kBits) & 1) != 0)
      ranks.push_back(static_cast<int>(at / words));
  }
  return ranks;
}

// -> whether it has begun.
bool ReductionQueue::begin_if_it_owes(std::size_t model) {
  const Lock lock(mutex_);
  auto& one = models_[model];
  if (one.reducible != nullptr && one.reducible->owes_average()) one.begun = true;
  return one.begun;
}

void ReductionQueue::close() {
  std::exception_ptr own_failure;
  for (std::size_t model = 0; model < models_.size(); ++model) {
    if (own_failure) break;
    try {
      if (begin_if_it_owes(model)) models_[model].reducible->fill();
    } catch (...) {
      own_failure = std::current_exception();
    }
  }
  close_with(End::Returned, own_failure);
}

void ReductionQueue::abandon() noexcept {
  try {
    close_with(End::ByException, std::make_exception_ptr(std::runtime_error("")));
  } catch (...) {
    // Its caller is on the way out with the exception that left the backward.
  }
}

void ReductionQueue::close_with(End end, std::exception_ptr own_failure) {
  try {
    if (at_end_) at_end_(end);
  } catch (...) {
    if (!own_failure) own_failure = std::current_exception();
  }
  try {
    {
      Lock lock(mutex_);
      failed_ = own_failure != nullptr;
      run_to_the_end(lock);
    }
    judge(own_failure);
    finish_models();
  } catch (...) {
    reset();
    throw;
  }
  reset();
}

// What the last round has told is the same on every rank, and so is whether this throws.
void ReductionQueue::judge(std::exception_ptr own_failure) {
  const auto words = words_for(models_.size());
  std::vector<int> failed;
  for (std::size_t at = 0; at < rows_.size(); at += words) {
    if ((rows_[at] & kFailed) != 0) failed.push_back(static_cast<int>(at / words));
  }
  if (failed.empty()) return check_models();
  tell_failure(failed, own_failure);
}

void ReductionQueue::tell_failure(const std::vector<int>& failed, const std::exception_ptr& own) {
  auto text = text_of(own);
  text.resize(kReasonBytes - 1);
  text.push_back('\0');
  std::string all(text.size() * static_cast<std::size_t>(control_.size()), '\0');
  control_.all_gather(text.data(), all.data(), text.size(), DataType::UInt8);
  if (own) std::rethrow_exception(own);
  const std::string why = all.c_str() + static_cast<std::size_t>(failed.front()) * kReasonBytes;
  throw GangBroken(Failure{
      .kind = Failure::Kind::GangBroken,
      .message = fmt::format(
          "rank{} {} left this backward by an exception{}{}. The gradients of this step are no "
          "averages on any rank: drop them (zero_grad), and the next backward works",
          failed.size() == 1 ? "" : "s", fmt::join(failed, ", "), why.empty() ? "" : ": ", why)});
}

void ReductionQueue::check_models() const {
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const auto with = ranks_that_began(model);
    if (with.empty() || static_cast<int>(with.size()) == control_.size()) continue;
    const auto& reducible = *models_[model].reducible;
    if (reducible.zero_where_unused()) continue;
    int without = 0;
    while (std::binary_search(with.begin(), with.end(), without)) ++without;
    throw std::logic_error(
        fmt::format("model {} ({}) got gradients on rank {}, and none on rank {}, in this "
                    "backward. The losses of all ranks must depend on the same models, or set "
                    "DataParallelOptions::find_unused_parameters",
                    model, reducible.name(), with.front(), without));
  }
}

void ReductionQueue::finish_models() {
  for (auto model = models_.size(); model-- > 0;) {
    if (models_[model].agreed) models_[model].reducible->finish(control_);
  }
}

void ReductionQueue::reset() {
  const Lock lock(mutex_);
  for (auto& model : models_) {
    if (model.reducible != nullptr) model.reducible->reset();
    model = {.reducible = model.reducible};
  }
  open_ = awake_ = ended_ = failed_ = ended_everywhere_ = false;
  agreed_.clear();
  rows_.clear();
  error_ = nullptr;
}

}  // namespace troupe::train
