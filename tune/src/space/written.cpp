#include <troupe/tune/detail/written.hpp>

#include <fmt/format.h>

namespace troupe::tune::detail {

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void refuse_none() {
  throw std::invalid_argument(
      "tune: an optional text \"none\" cannot be searched: that is how one without a value is "
      "written");
}

void WrittenReader::pass_blanks() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
}

bool WrittenReader::passes(char sign) {
  pass_blanks();
  if (at_ == text_.size() || text_[at_] != sign) return false;
  ++at_;
  return true;
}

void WrittenReader::pass(char sign) {
  if (!passes(sign)) refuse(fmt::format("'{}'", sign));
}

std::string_view WrittenReader::word() {
  pass_blanks();
  const auto rest = text_.substr(at_);
  const auto word = rest.substr(0, rest.find_first_of(" ,:[]{}"));
  at_ += word.size();
  return word;
}

std::string WrittenReader::text() {
  if (!passes('"')) refuse("text in quotes");
  std::string text;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '"') {
      ++at_;
      return text;
    }
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    text += text_[at_];
  }
  refuse("a closing quote");
}

void WrittenReader::end() {
  pass_blanks();
  if (at_ < text_.size()) refuse("its end");
}

void WrittenReader::refuse(const std::string& wanted) const {
  throw std::invalid_argument(fmt::format("at character {} it lacks {}", at_ + 1, wanted));
}

}  // namespace troupe::tune::detail
