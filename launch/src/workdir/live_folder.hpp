#pragma once

#include <functional>
#include <string>

#include "os/unique_fd.hpp"

namespace troupe::launch {

/// A folder that is there as long as a process has this object, or another of the same name on this
/// machine: whoever comes first fills it, the others wait. It is removed with the last of them, or,
/// where that was killed, by the next who looks.
///
/// Beside `NAME` there is `NAME.lock`, on which whoever has the folder has a shared lock: flock(2),
/// which ends with the process. Who fills or removes the folder has it alone.
class LiveFolder {
 public:
  /// `fill`: makes the folder of the path that it is given, with its content. Throws what that
  /// throws, and Refused where there can be none in `parent`, which is made.
  LiveFolder(const std::string& parent, const std::string& name,
             const std::function<void(const std::string&)>& fill);
  ~LiveFolder();
  LiveFolder(const LiveFolder&) = delete;
  LiveFolder& operator=(const LiveFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string parent_;
  std::string path_;
  os::UniqueFd lock_;  // shared; of the file beside the folder
};

/// Removes those in `parent` that nobody has any more. One that cannot be removed stays.
void remove_left_folders(const std::string& parent);

}  // namespace troupe::launch
