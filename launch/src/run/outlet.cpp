#include "run/outlet.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::launch {
namespace {

constexpr std::size_t kFilePiece = 1 << 18;
constexpr std::chrono::milliseconds kTurn{100};  // of writing, where nobody is to be waited for

/// A pipe or terminal that has room has room for PIPE_BUF bytes; a file has always.
std::size_t piece_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? kFilePiece : PIPE_BUF;
}

}  // namespace

Outlet::Outlet(int descriptor) : descriptor_(descriptor), piece_(piece_of(descriptor)) {}

void Outlet::put(std::string_view text) {
  if (!broken_) waiting_ += text;
}

/// What waits may never all be written, where ranks go on to print.
void Outlet::forget_written() {
  if (written_ < waiting_.size() / 2) return;
  waiting_.erase(0, written_);
  written_ = 0;
}

Outlet::State Outlet::drain(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::max(patience, kTurn);
  while (!broken_ && written_ < waiting_.size()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const auto wait = std::clamp(left, std::chrono::milliseconds(0), patience);
    pollfd can{descriptor_, POLLOUT, 0};
    const int ready = ::poll(&can, 1, static_cast<int>(wait.count()));
    if (ready == 0 || left.count() <= 0 || (ready < 0 && errno == EINTR)) {
      forget_written();
      return State::Waits;
    }
    const auto size = std::min(piece_, waiting_.size() - written_);
    const auto wrote = ::write(descriptor_, waiting_.data() + written_, size);
    if (wrote > 0) written_ += static_cast<std::size_t>(wrote);
    if (wrote < 0 && errno != EINTR && errno != EAGAIN) broken_ = true;
    if (wrote < 0 && errno == EAGAIN) return State::Waits;
  }
  waiting_.clear();
  written_ = 0;
  return broken_ ? State::Broken : State::Empty;
}

}  // namespace troupe::launch
