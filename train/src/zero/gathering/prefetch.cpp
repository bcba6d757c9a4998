#include "zero/gathering/prefetch.hpp"

#include <exception>
#include <utility>

namespace troupe::train {

bool Prefetch::prepare(std::shared_ptr<Flat> flat) {
  drop_prepared();
  if (flat == come_) return true;
  try {
    call_ = flat->begin_gather();
  } catch (const std::exception&) {
    return false;  // the bucket is waited for when it is used, and the error is told of then
  }
  prepared_ = std::move(flat);
  return true;
}

void Prefetch::begin() {
  if (!prepared_) return;
  if (!queue_) queue_ = std::make_unique<WorkQueue>(communicator_);
  work_ = queue_->all_gather(call_.in, call_.out, call_.count, call_.type);
  come_ = std::exchange(prepared_, nullptr);
}

void Prefetch::drop_prepared() {
  if (const auto flat = std::exchange(prepared_, nullptr)) flat->end_gather(false);
}

void Prefetch::wait() {
  if (!work_) return;
  try {
    std::exchange(work_, std::nullopt)->wait();
  } catch (...) {
    drop();
    throw;
  }
  come_->drop_sent();
}

void Prefetch::deliver() { std::exchange(come_, nullptr)->end_gather(true); }

void Prefetch::drop() {
  if (const auto flat = std::exchange(come_, nullptr)) flat->end_gather(false);
}

void Prefetch::stop() noexcept {
  queue_.reset();  // which waits
  work_.reset();
  drop_prepared();
  drop();
}

}  // namespace troupe::train
