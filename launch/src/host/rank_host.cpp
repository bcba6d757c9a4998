#include "host/rank_host.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <troupe/errors.hpp>
#include <troupe/gang_context.hpp>

#include "host/error_file.hpp"
#include "host/host_facts.hpp"
#include "host/limits.hpp"
#include "plan/environment.hpp"
#include "words/refuse.hpp"
#include "workdir/file_content.hpp"

namespace troupe::launch {
namespace {

constexpr std::chrono::milliseconds kNewsPatience{100};

void write(const std::string& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (out) return;
  refuse(fmt::format("'{}' cannot be written: {}", file, std::strerror(errno)));
}

}  // namespace

RankHost::RankHost() {
  take_file_limit_as_error();
  if (this_gang() == nullptr) throw std::logic_error("a host of ranks is a rank of a gang itself");
}

HostFacts RankHost::facts(int ports, const std::string& workdir) {
  ports_ = std::vector<ReservedPort>(static_cast<std::size_t>(ports));
  auto facts = facts_of(*this_gang(), ports_, rendezvous_);
  facts.has_workdir = workdir.empty() || has_archive(workdir);
  return facts;
}

void RankHost::receive(const std::string& workdir, bool last, const std::string& piece) {
  if (!incoming_) incoming_ = receive_archive(workdir);
  incoming_->add(piece);
  if (!last) return;
  incoming_->finish();
  incoming_.reset();
}

void RankHost::start(HostOrder order, const std::string& attached) {
  const auto directory = directory_for(order);
  auto base = with_defaults(merged(environment_for_programs(), order.environment));
  make_scratch_for(order.wants_result || !attached.empty());
  if (!attached.empty()) {
    base.emplace_back("TROUPE_ATTACHED_FILE", scratch_->path() + "/attached");
    write(scratch_->path() + "/attached", attached);
  }
  std::vector<ProgramSpec> specs;
  for (auto& rank : order.ranks) {
    if (scratch_)
      base = merged(std::move(base),
                    {{kErrorFileVariable, error_file(static_cast<int>(specs.size()))}});
    specs.push_back({order.arguments, merged(base, rank.variables), directory});
  }
  if (order.wants_result)
    specs.front().environment.emplace_back(kResultVariable, scratch_->path() + "/result");
  programs_ = std::make_unique<Programs>(specs);
}

/// `needed`: else programs run without it too, and only their tracebacks are not told.
void RankHost::make_scratch_for(bool needed) {
  try {
    scratch_ = make_scratch();
  } catch (const Error&) {
    if (needed) throw;
  }
}

std::string RankHost::error_file(int local) const {
  return fmt::format("{}/error-{}.json", scratch_->path(), local);
}

std::string RankHost::directory_for(const HostOrder& order) {
  if (order.workdir.empty()) return order.directory;
  workdir_ = receive_folder(order.workdir, {}, order.run_id);
  return workdir_->path();
}

void RankHost::add_traceback(RankEnd& end) const {
  const bool failed = end.exit_code != 0 || end.signal != 0;
  if (scratch_ && failed) end.traceback = traceback_of(error_file(end.local));
}

HostNews RankHost::next(bool with_output) {
  if (!programs_) throw std::logic_error("next() was called before start()");
  auto news = programs_->next(kNewsPatience, with_output);
  for (auto& exit : news.exits) add_traceback(exit);
  for (auto& end : news.ends) add_traceback(end);
  if (news.over && scratch_) {
    auto left = content_of(scratch_->path() + "/result");
    news.has_result = left.why_not.empty();
    news.result = std::move(left.bytes);
    if (!left.is_missing) news.why_no_result = std::move(left.why_not);
  }
  return news;
}

void RankHost::leave() {
  programs_.reset();
  workdir_.reset();
  scratch_.reset();
}

void RankHost::stop(std::uint32_t grace_ms) {
  if (programs_) programs_->stop(std::chrono::milliseconds(grace_ms));
}

}  // namespace troupe::launch
