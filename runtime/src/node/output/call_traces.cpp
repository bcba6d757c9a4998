#include "node/output/call_traces.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/ticks.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {
namespace {

namespace fs = std::filesystem;
using runtime::CallTrace;
using runtime::JobId;
using runtime::ProcessId;

constexpr std::uint64_t kMostTraceBytes = 8 << 20;  // of one answer, whatever is asked for
constexpr std::size_t kMostFileBytes = 4 << 20;
constexpr std::size_t kMostProcesses = 10'000;  // likewise; who asks goes on behind them

struct TracePart {
  JobId job{};
  std::string file;  // empty: it is there
};
using TraceParts = std::map<ProcessId, TracePart>;

bool is_asked_for(JobId job, ProcessId process, wire::LogRequest::Reader request) {
  return (request.getJob() == 0 || job.value() == request.getJob()) &&
         process.value() > request.getAfter();
}

void add_files(const Logs& logs, wire::LogRequest::Reader request, TraceParts& parts) {
  std::error_code error;
  for (fs::directory_iterator entry(logs.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    unsigned long long job = 0, process = 0;
    int length = 0;
    const auto name = entry->path().filename().string();
    if (std::sscanf(name.c_str(), "job-%llu-calls-%llu.trace%n", &job, &process, &length) != 2 ||
        static_cast<std::size_t>(length) != name.size())
      continue;
    if (is_asked_for(JobId(job), ProcessId(process), request) &&
        logs.was_started(ProcessId(process)))
      parts.emplace(ProcessId(process), TracePart{JobId(job), entry->path().string()});
  }
}

std::string read_trace_file(const std::string& path) {
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string bytes(std::min(static_cast<std::size_t>(status.st_size), kMostFileBytes), '\0');
  const auto got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

std::string content_of(const LiveTraces& live, ProcessId process, const TracePart& part,
                       bool only_running) {
  if (!part.file.empty()) return read_trace_file(part.file);
  const auto trace = live.read(process, only_running);
  return trace ? runtime::encode(*trace) : std::string();
}

}  // namespace

std::string trace_file(const std::string& folder, JobId job, ProcessId process) {
  return fmt::format("{}/job-{}-calls-{}.trace", folder, job, process);
}

void save_trace(const std::string& folder, const CallTrace& trace) {
  if (folder.empty() || trace.spans.empty()) return;
  const auto path = trace_file(folder, trace.job, trace.process);
  const os::UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return;
  const auto bytes = runtime::encode(trace);
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    ::unlink(path.c_str());
}

void read_traces(const Logs& logs, const LiveTraces& live, wire::LogRequest::Reader request,
                 wire::LogReply::Builder reply) {
  reply.setId(request.getId());
  reply.setClock(os::unix_ns());
  TraceParts parts;
  for (const auto& [process, job] : live.processes) {
    if (is_asked_for(job, process, request)) parts.emplace(process, TracePart{job, {}});
  }
  if (!logs.folder.empty() && !request.getRunning()) add_files(logs, request, parts);
  while (parts.size() > kMostProcesses) parts.erase(std::prev(parts.end()));
  std::vector<std::pair<ProcessId, std::string>> contents;
  const auto most = std::min(request.getMost(), kMostTraceBytes);
  std::uint64_t bytes = 0;
  for (const auto& [process, part] : parts) {
    contents.emplace_back(process, std::string());
    if (bytes >= most) continue;
    contents.back().second = content_of(live, process, part, request.getRunning());
    bytes += contents.back().second.size();
  }
  auto list = reply.initParts(static_cast<unsigned>(contents.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    const auto& [process, content] = contents[i];
    const auto& part = parts.at(process);
    list[i].setJob(part.job.value());
    list[i].setProcess(process.value());
    list[i].setFile(part.file);
    list[i].setText(
        capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(content.data()), content.size()));
  }
}

}  // namespace troupe::node
