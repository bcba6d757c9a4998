#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace troupe::tune {

/// While it is there, the trials of resume_driver.cpp wait before their third report, so that their
/// search does not end by itself. `storage`: of the driver.
class Hold {
 public:
  explicit Hold(const std::filesystem::path& storage) : file_(storage / "hold") {
    if (!std::ofstream(file_)) throw std::runtime_error("cannot make " + file_.string());
  }
  void release() const {
    if (!std::filesystem::remove(file_)) throw std::runtime_error(file_.string() + " is gone");
  }

 private:
  std::filesystem::path file_;
};

}  // namespace troupe::tune
