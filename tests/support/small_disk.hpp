#pragma once

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include <sys/mount.h>

namespace troupe::test {

/// A file system of so many KiB, mounted on a folder until this object goes.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path folder, int kibibytes = 64)
      : folder_(std::move(folder)),
        is_mounted_(::mount("tmpfs", folder_.c_str(), "tmpfs", 0,
                            ("size=" + std::to_string(kibibytes) + "k").c_str()) == 0) {}
  ~SmallDisk() {
    if (is_mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  bool is_there() const {
    if (!is_mounted_) std::cout << "skipped: mounting a small file system needs root\n";
    return is_mounted_;
  }

 private:
  const std::filesystem::path folder_;
  const bool is_mounted_;
};

/// Leaves no room on a small disk.
inline void fill(const std::filesystem::path& disk) {
  std::ofstream(disk / "filler", std::ios::binary) << std::string(4 << 20, 'x') << std::flush;
}
inline void make_room(const std::filesystem::path& disk) {
  std::filesystem::remove(disk / "filler");
}

}  // namespace troupe::test
