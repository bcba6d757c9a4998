#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/trainable.hpp>

namespace troupe::launch {

/// A scalar that a program has written for TensorBoard.
struct WrittenScalar {
  std::string tag;
  double value = 0;
  std::int64_t step = 0;
};

/// The scalars of one record of an event file, an Event of TensorFlow's event.proto: simple values, as
/// PyTorch and TensorFlow 1 write them, and tensors of one number, as TensorFlow 2 does. What else
/// there is, is passed over, and so is what is no such record.
std::vector<WrittenScalar> scalars_in(std::string_view event);

/// Follows the event files in a folder and those below it, as their writers go on. What they have as this is
/// made was written before, and is passed over.
class ScalarEvents {
 public:
  /// `folder`: it may not be there yet; empty: there is nothing to read, ever.
  explicit ScalarEvents(std::string folder);

  /// What has come since, as reports: one for each value of `metric`, with its "step" and with the
  /// other scalars that came for that step before it. Looks at the folder twice a second at most,
  /// and at once where `now`.
  std::vector<Metrics> read(const std::string& metric, bool now = false);

 private:
  void look_for_files(bool skip);
  void read_file(const std::string& path, std::uint64_t& offset,
                 std::vector<WrittenScalar>& into) const;

  const std::string folder_;
  std::map<std::string, std::uint64_t> offsets_;  // of what was read, by path
  std::map<std::int64_t, Metrics> others_;        // by step
  std::int64_t looked_at_ms_ = 0;
};

}  // namespace troupe::launch
