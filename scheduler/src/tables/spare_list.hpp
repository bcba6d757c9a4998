#pragma once

#include <cstddef>

#include <boost/container/small_vector.hpp>

#include <troupe/scheduler/ids.hpp>

namespace troupe::scheduler {

struct Process;

struct Spare {
  JobId job{};
  Process* process = nullptr;
};

/// The spares of one node, by when they became so. A value that lies with its node; Spares alone
/// changes it.
class SpareList {
 public:
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  friend class Spares;
  boost::container::small_vector<Spare, 4> list_;
};

}  // namespace troupe::scheduler
