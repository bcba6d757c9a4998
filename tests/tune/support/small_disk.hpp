#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/mount.h>

#include <catch2/catch.hpp>

#include "support/temporary_folder.hpp"

namespace troupe::tune {

/// A file system of so many KiB, gone with this object.
class SmallDisk {
 public:
  explicit SmallDisk(int kibibytes = 64)
      : mounted_{::mount("tmpfs", path().c_str(), "tmpfs", 0,
                         ("size=" + std::to_string(kibibytes) + "k").c_str()) == 0} {}
  ~SmallDisk() {
    if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  std::filesystem::path path() const { return folder_.path(); }
  bool is_there() const {
    if (!mounted_) WARN("skipped: mounting a small file system needs root");
    return mounted_;
  }

 private:
  TemporaryFolder folder_;
  bool mounted_;
};

/// Leaves no room on a small disk.
inline void fill(const std::filesystem::path& disk) {
  std::ofstream(disk / "filler", std::ios::binary) << std::string(4 << 20, 'x') << std::flush;
}
inline void make_room(const std::filesystem::path& disk) {
  std::filesystem::remove(disk / "filler");
}

}  // namespace troupe::tune
