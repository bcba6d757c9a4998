#include "node/output/log_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

namespace fs = std::filesystem;
using runtime::ProcessId;

constexpr std::uint64_t kMostAnswerBytes = 4 << 20;  // of one answer, whatever is asked for
constexpr std::size_t kMostFiles = 1000;

struct Part {
  std::uint64_t job = 0;
  std::uint64_t process = 0;
  std::string file = {};
  std::string text = {};
  std::uint64_t next = 0;
  bool more = false;
};

/// "job-5-process-7.log"; nullopt for another name.
std::optional<Part> part_named(const std::string& name) {
  unsigned long long job = 0, process = 0;
  int length = 0;
  if (std::sscanf(name.c_str(), "job-%llu-process-%llu.log%n", &job, &process, &length) != 2 ||
      static_cast<std::size_t>(length) != name.size())
    return std::nullopt;
  return Part{.job = job, .process = process};
}

bool is_wanted(const Part& part, wire::LogRequest::Reader request) {
  return (request.getJob() == 0 || part.job == request.getJob()) &&
         (request.getProcess() == 0 || part.process == request.getProcess());
}

std::vector<Part> parts_in(const Logs& logs, wire::LogRequest::Reader request) {
  std::vector<Part> parts;
  std::error_code error;
  for (fs::directory_iterator entry(logs.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    auto part = part_named(entry->path().filename().string());
    if (!part || !is_wanted(*part, request) || !logs.was_started(ProcessId(part->process)))
      continue;
    part->file = entry->path().string();
    parts.push_back(std::move(*part));
  }
  std::ranges::sort(parts, std::ranges::greater{}, &Part::process);
  if (parts.size() > kMostFiles) parts.resize(kMostFiles);  // the latest
  std::ranges::reverse(parts);
  return parts;
}

std::optional<std::uint64_t> place_in(const Part& part, wire::LogRequest::Reader request) {
  for (const auto known : request.getKnown()) {
    if (known.getProcess() == part.process) return known.getOffset();
  }
  return std::nullopt;
}

/// Where it is cut, at lines. `whole`: a line that has no end yet is left for the next time.
void read(Part& part, std::optional<std::uint64_t> place, std::uint64_t most, bool whole) {
  const os::UniqueFd file(
      ::open(part.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto start = place ? std::min(*place, size) : size > most ? size - most : 0;
  part.text.resize(std::min(size - start, most));
  const auto got =
      ::pread(file.get(), part.text.data(), part.text.size(), static_cast<off_t>(start));
  part.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  part.next = start + part.text.size();
  part.more = part.next < size;
  if (part.more || whole) {
    // The rest of the last line comes with the next answer, unless it is longer than this one.
    const auto end = part.text.rfind('\n');
    const auto kept = end != std::string::npos ? end + 1 : part.more ? part.text.size() : 0;
    part.next -= part.text.size() - kept;
    part.text.resize(kept);
  }
  if (!place && start > 0) part.text.erase(0, part.text.find('\n') + 1);
}

}  // namespace

void read_logs(const Logs& logs, wire::LogRequest::Reader request, wire::LogReply::Builder reply) {
  reply.setId(request.getId());
  if (logs.folder.empty()) return;
  auto parts = parts_in(logs, request);
  const auto most =
      std::min(request.getMost(), kMostAnswerBytes) / std::max<std::size_t>(parts.size(), 1);
  for (auto& part : parts) {
    const bool goes_on = request.getFollows() && logs.runs(ProcessId(part.process));
    read(part, place_in(part, request), most, goes_on);
  }
  auto list = reply.initParts(static_cast<unsigned>(parts.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    const auto& part = parts[i];
    list[i].setJob(part.job);
    list[i].setProcess(part.process);
    list[i].setFile(part.file);
    list[i].setText(capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(part.text.data()),
                                        part.text.size()));
    list[i].setNext(part.next);
    list[i].setMore(part.more);
  }
}

}  // namespace troupe::node
