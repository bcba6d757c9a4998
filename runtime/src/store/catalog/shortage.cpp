#include "store/catalog/shortage.hpp"

#include <cassert>
#include <utility>

#include "store/catalog/require.hpp"

namespace troupe::store {

std::optional<std::uint64_t> Shortage::open_round() {
  if (std::exchange(had_round_, true)) return std::nullopt;
  return ++round_;
}

void Shortage::on_answer(ProcessId process, std::uint64_t round) {
  if (round == round_) awaited_.erase(process);
}

void Shortage::on_write_ended(std::uint64_t bytes) {
  assert(bytes <= leaving_bytes_);
  leaving_bytes_ -= bytes;
}

void Shortage::on_disk_failed(ObjectId object, const Refusal& why) {
  set_aside_.push_back(object);
  disk_failure_ = why;
}

std::vector<ObjectId> Shortage::end() {
  had_round_ = false;
  awaited_.clear();
  disk_failure_.reset();
  return std::exchange(set_aside_, {});
}

void Shortage::check() const {
  require(had_round_ || awaited_.empty(),
          "answers are awaited, and nobody was asked in this shortage");
  require(disk_failure_.has_value() == !set_aside_.empty(),
          "the disk has failed for no object, or without a reason");
}

}  // namespace troupe::store
