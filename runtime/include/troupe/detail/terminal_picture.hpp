#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe::detail {

/// What this process draws again and again in the last lines of a terminal, so that others who
/// write to the same terminal put their lines above it. One in a process; any thread. Whoever holds
/// `lifted` keeps the others from the terminal meanwhile.
class TerminalPicture {
 public:
  /// What stands around lines that are to go above the picture. Both are empty where there is none
  /// on that terminal, and then nothing is held.
  struct Lifted {
    std::unique_lock<std::mutex> lock = {};
    std::string before = {};  ///< takes the picture away
    std::string after = {};   ///< draws it again
  };

  static TerminalPicture& of_process() {
    static TerminalPicture picture;
    return picture;
  }

  /// For whole lines to `descriptor`.
  Lifted lifted(int descriptor) {
    std::unique_lock lock(mutex_);
    if (lines_ == 0 || !is_same_terminal(descriptor)) return {};
    return {.lock = std::move(lock), .before = erasure(), .after = text_};
  }
  /// Calls `write(text)` with what draws `picture` in place of the one before. Each of its lines has
  /// an end, and none is wider than the terminal.
  template <class Write>
  void draw(int descriptor, std::string picture, const Write& write) {
    const std::lock_guard lock(mutex_);
    const auto before =
        lines_ > 0 && is_same_terminal(descriptor) ? erasure() : std::string("\x1b[J");
    lines_ = 0;
    for (const char byte : picture) lines_ += byte == '\n' ? 1 : 0;
    text_ = std::move(picture);
    descriptor_ = descriptor;
    write(before + text_);
  }
  /// Calls `write(text)` with what replaces the picture by `text`, which nobody draws again.
  template <class Write>
  void replace(int descriptor, std::string_view text, const Write& write) {
    const std::lock_guard lock(mutex_);
    std::string all;
    if (descriptor_ == descriptor) {
      all = erasure();
      forget();
    }
    all += text;
    write(all);
  }
  /// It stays, and what others write stands below it from now on.
  void leave(int descriptor) {
    const std::lock_guard lock(mutex_);
    if (descriptor_ == descriptor) forget();
  }

 private:
  void forget() {
    lines_ = 0;
    text_.clear();
    descriptor_ = -1;
  }
  std::string erasure() const {
    return lines_ == 0 ? std::string() : "\x1b[" + std::to_string(lines_) + "A\r\x1b[J";
  }
  bool is_same_terminal(int descriptor) const {
    if (descriptor == descriptor_) return true;
    struct stat a = {}, b = {};
    return ::fstat(descriptor, &a) == 0 && ::fstat(descriptor_, &b) == 0 && S_ISCHR(a.st_mode) &&
           S_ISCHR(b.st_mode) && a.st_rdev == b.st_rdev;
  }

  std::mutex mutex_;  // guards what follows, and the terminal while there is a picture
  int descriptor_ = -1;
  std::size_t lines_ = 0;
  std::string text_;
};

}  // namespace troupe::detail
