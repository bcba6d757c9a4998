#include "node/output/line_cutter.hpp"

#include <utility>

namespace troupe::node {

void LineCutter::append(std::string_view bytes) {
  if (within_line_) {
    const auto end = bytes.find('\n');
    const auto dropped = end == std::string_view::npos ? bytes.size() : end + 1;
    lines_.left_out += dropped;
    bytes.remove_prefix(dropped);
    position_ += dropped;
    within_line_ = end == std::string_view::npos;
  }
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    add(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(end + 1);
    ++position_;
  }
}

/// `piece` has no line end. A line that grows too long is cut; what follows is the next one.
void LineCutter::add(std::string_view piece) {
  while (unfinished_.size() + piece.size() > longest_line_) {
    const auto fits = longest_line_ - unfinished_.size();
    if (unfinished_.empty()) begin_ = position_;
    unfinished_.append(piece.substr(0, fits));
    position_ += fits;
    piece.remove_prefix(fits);
    cut();
  }
  if (unfinished_.empty()) begin_ = position_;
  unfinished_.append(piece);
  position_ += piece.size();
}

void LineCutter::skip(std::uint64_t bytes) {
  if (bytes == 0) return;
  lines_.left_out += bytes + unfinished_.size();
  unfinished_.clear();
  position_ += bytes;
  within_line_ = true;
}

void LineCutter::cut() {
  if (!unfinished_.empty()) end_line();
}

void LineCutter::say(std::string_view line) {
  cut();
  within_line_ = false;
  lines_.text.append(line).push_back('\n');
  lines_.begins.push_back(position_);
}

void LineCutter::end_line() {
  lines_.text.append(std::exchange(unfinished_, {})).push_back('\n');
  lines_.begins.push_back(begin_);
}

LineCutter::Lines LineCutter::take() { return std::exchange(lines_, {}); }

}  // namespace troupe::node
