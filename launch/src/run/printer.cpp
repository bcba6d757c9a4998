#include "run/printer.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/name.hpp"
#include "words/refuse.hpp"

namespace troupe::launch {
namespace {

constexpr std::size_t kLastLines = 10, kLastBytes = 400;

/// Whether standard output and error are one pipe or terminal, where nobody can tell them apart.
bool are_one_stream() {
  struct stat out {
  }, err{};
  if (::fstat(STDOUT_FILENO, &out) != 0 || ::fstat(STDERR_FILENO, &err) != 0) return false;
  return out.st_dev == err.st_dev && out.st_ino == err.st_ino && !S_ISREG(out.st_mode);
}

}  // namespace

Printer::Printer(PrinterOptions options)
    : options_(std::move(options)), one_stream_(are_one_stream()) {}

void Printer::begin(int ranks, const std::string& of_attempt) {
  ranks_ = std::vector<Rank>(static_cast<std::size_t>(ranks));
  if (options_.log_directory.empty()) return;
  std::filesystem::path folder = options_.log_directory;
  if (!of_attempt.empty()) folder /= of_attempt;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (int rank = 0; rank < ranks && !failed; ++rank) {
    const auto file = folder / fmt::format("rank-{}.log", rank);
    ranks_[static_cast<std::size_t>(rank)].file.reset(std::fopen(file.c_str(), "we"));
    if (!ranks_[static_cast<std::size_t>(rank)].file)
      failed = std::error_code(errno, std::generic_category());
  }
  if (failed) {
    refuse(
        fmt::format("the logs of the ranks cannot be written into '{}' (--log-dir): "
                    "{}; name a folder that can be written",
                    config::printable(folder.string()), failed.message()));
  }
}

void Printer::print(int rank, bool to_error, std::string_view text) {
  auto& of = ranks_.at(static_cast<std::size_t>(rank));
  if (of.file) write_file(of, text);
  const bool shown =
      (options_.log_directory.empty() || options_.tee) && (!options_.quiet || rank == 0);
  auto& to = to_error && !one_stream_ ? err_ : out_;
  const auto prefix = fmt::format("[{}] ", rank);
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    if (shown) {
      to.put(prefix);
      to.put(line);
      to.put("\n");
    }
    keep(of, line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

void Printer::say(std::string_view text) { (one_stream_ ? out_ : err_).put(text); }

Outlet::State Printer::flush(std::chrono::milliseconds patience) {
  for (auto& rank : ranks_) {
    if (rank.file && std::fflush(rank.file.get()) != 0) write_file(rank, {});
  }
  const auto out = out_.drain(patience);
  const auto err = err_.drain(patience);
  if (out == Outlet::State::Broken) return out;
  return err == Outlet::State::Waits ? err : out;
}

const std::deque<std::string>& Printer::last_lines(int rank) const {
  return ranks_.at(static_cast<std::size_t>(rank)).last;
}

void Printer::keep(Rank& rank, std::string_view line) {
  rank.last.emplace_back(line.substr(0, kLastBytes));
  if (rank.last.size() > kLastLines) rank.last.pop_front();
}

void Printer::write_file(Rank& rank, std::string_view text) {
  const auto written = std::fwrite(text.data(), 1, text.size(), rank.file.get());
  if (written == text.size() && std::ferror(rank.file.get()) == 0) return;
  const auto why = std::strerror(errno);
  std::clearerr(rank.file.get());
  if (std::exchange(warned_, true)) return;
  say(
      fmt::format("troupe run: a log of a rank cannot be written ({}): what they print goes on, "
                  "and the files in '{}' have gaps\n",
                  why, config::printable(options_.log_directory)));
}

}  // namespace troupe::launch
