#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include <sys/timex.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "config/token.hpp"
#include "doctor/finding.hpp"
#include "transport/find_token.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

constexpr double kMostClockSeconds = 1;    // by which clocks may differ
constexpr double kWorthNotingSilence = 3;  // a node beats every second, and is lost after ten
constexpr double kLongSilence = 7;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string label(const json& node) {
  return fmt::format("node {} ({})", node.at("node").get<std::uint64_t>(),
                     node.at("name").get<std::string>());
}

void check_node(Findings& findings, const json& node) {
  const auto silent = node.at("silent_seconds").get<double>();
  const auto value = fmt::format("{}; the head heard of it {:.1f} s ago",
                                 node.at("state").get<std::string>(), silent);
  if (silent < kWorthNotingSilence) return findings.ok(label(node), value);
  const std::string remedy =
      "a node says something every second, and is lost after 10 s: look whether its machine is "
      "overloaded or suspended, or its network down";
  silent < kLongSilence ? findings.note(label(node), value, remedy)
                        : findings.problem(label(node), value, remedy);
}

/// "BOOT ID/NETWORK NAMESPACE": nodes of two containers share the first part.
std::string boot_of(const json& node) {
  const auto machine = node.value("machine", "");
  return machine.substr(0, machine.find('/'));
}

void check_shared_machines(Findings& findings, const json& nodes) {
  std::map<std::string, std::vector<const json*>> machines;
  for (const auto& node : nodes) {
    if (!boot_of(node).empty()) machines[boot_of(node)].push_back(&node);
  }
  for (const auto& [boot, there] : machines) {
    if (there.size() < 2) continue;
    std::string names;
    bool twice = false;
    for (const auto* node : there) {
      names += (names.empty() ? "" : ", ") + label(*node);
      twice = twice || node->value("offers_all_cpus", false);
    }
    if (!twice) {
      findings.ok("nodes of one machine", names + "; each offers the cores it was given");
      continue;
    }
    findings.note("nodes of one machine",
                  names + "; some of its cores and memory are offered twice",
                  "start each `troupe worker` there with its part, by --cpus, "
                  "--object-store-memory and --resource memory=GB");
  }
}

/// Nothing where no file names a head, or no home directory holds one.
std::string known_head() try { return config::known_head(); } catch (const Error&) {
  return {};
}

std::optional<FoundHead> find_or_say(Findings& findings, const std::string& given) {
  try {
    return find_head(given);
  } catch (const Error& error) {
    if (!given.empty()) {
      findings.problem("head", error.what(), "correct what --head (--address) was given here");
    } else if (!is_private(given)) {
      findings.problem("head", fmt::format("TROUPE_ADDRESS: {}", error.what()),
                       "set TROUPE_ADDRESS to the address that `troupe head` has printed, or unset "
                       "it: programs then start private clusters of their own");
    } else if (!known_head().empty()) {
      const auto file = config::address_file();
      findings.problem("head", fmt::format("{}: {}", file, error.what()),
                       fmt::format("remove {}: `troupe head` writes it anew", file));
    } else {
      findings.ok("head", "none is known here: programs start private clusters of their own");
    }
  }
  return std::nullopt;
}

/// Where the token here cannot be read, or is not the head's.
std::string token_remedy(const std::string& at, const std::string& token_file) {
  const char* variable = std::getenv("TROUPE_TOKEN");
  if (token_file.empty() && variable && *variable) {
    return fmt::format(
        "set TROUPE_TOKEN to the 64 digits of the token file of the head at {}, or "
        "unset it and name a copy of that file with --token-file",
        at);
  }
  return fmt::format(
      "copy the token file of the head at {} to this machine, mode 0600, and name it "
      "with --token-file",
      at);
}

/// Nobody has answered there.
void say_silence(Findings& findings, const FoundHead& head, const std::string& why) {
  const auto at = transport::format_endpoint(head.at.host, head.at.port);
  const bool nobody_listens = transport::why_nobody_listens(head.at).has_value();
  if (!nobody_listens) {
    const auto stale =
        head.file.empty() ? "" : fmt::format("; where it is another program, remove {}", head.file);
    return findings.problem(
        "head", why,
        fmt::format("look whether a firewall keeps this machine from {}, whether it is `troupe "
                    "head` that listens there (ss -ltnp), and whether that is stopped (kill "
                    "-CONT) or its machine overloaded{}",
                    at, stale));
  }
  if (!head.file.empty()) {
    return findings.note("head", why,
                         fmt::format("remove {}, which an ended head has left, or start a head "
                                     "again with `troupe head`",
                                     head.file));
  }
  findings.problem("head", why,
                   fmt::format("look whether `troupe head` runs there, and whether a firewall "
                               "keeps this machine from {}",
                               at));
}

}  // namespace

std::optional<Answer> check_head(Findings& findings, const std::string& head,
                                 const std::string& token_file) {
  const auto found = find_or_say(findings, head);
  if (!found) return std::nullopt;
  const auto at = transport::format_endpoint(found->at.host, found->at.port);
  std::optional<config::FoundToken> token;
  try {
    Answer answer;
    token = find_token(*found, token_file);
    answer.at = found->at;
    answer.asked = unix_time();
    answer.status = ask_head(*found, *token, {{"do", "status"}});
    answer.answered = unix_time();
    findings.ok("head", fmt::format("cluster {} at {} answers in {:.0f} ms; up {:.0f} s, nodes: {}",
                                    answer.status.at("cluster").get<std::string>(), at,
                                    1e3 * (answer.answered - answer.asked),
                                    answer.status.at("up_seconds").get<double>(),
                                    answer.status.at("nodes").size()));
    return answer;
  } catch (const Disconnected& error) {
    say_silence(findings, *found, error.what());
  } catch (const std::exception& error) {
    const auto remedy = token_remedy(at, token_file);
    findings.problem("head", error.what(),
                     !token ? remedy
                            : fmt::format("if the token differs, {}; if the protocol differs, "
                                          "install the head's version of Troupe here",
                                          remedy));
  }
  return std::nullopt;
}

void check_clock(Findings& findings, const std::optional<Answer>& answer) {
  const auto now = fmt::format(
      "{:%Y-%m-%d %H:%M:%S} UTC",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  if (!answer || !answer->status.contains("time")) {
    timex state{};
    const bool synchronized = ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
    return findings.ok("clock", fmt::format("{}; the kernel {} it to be synchronized", now,
                                            synchronized ? "knows" : "does not know"));
  }
  // The head has looked at its clock between the two.
  const auto middle = (answer->asked + answer->answered) / 2;
  const auto doubt = (answer->answered - answer->asked) / 2;
  const auto differs = answer->status.at("time").get<double>() - middle;
  const auto value =
      fmt::format("{}; the head's is {:.3f} s {} this machine's, give or take {:.3f} s", now,
                  std::abs(differs), differs < 0 ? "behind" : "ahead of", doubt);
  if (std::abs(differs) <= kMostClockSeconds + doubt) return findings.ok("clock", value);
  findings.note("clock", value,
                "set the clocks of all machines by NTP (chrony, systemd-timesyncd): times in logs "
                "and results cannot be compared otherwise; the cluster itself works");
}

void check_nodes(Findings& findings, const Answer& answer) {
  const auto version = answer.status.value("version", "");
  if (!version.empty() && version != kVersion) {
    findings.note(
        "version of the head", version,
        fmt::format("install one version of Troupe on all machines, as others may not understand "
                    "each other; here is {}",
                    kVersion));
  }
  const auto& nodes = answer.status.at("nodes");
  if (nodes.empty()) {
    return findings.note("nodes", "the cluster has none, so that whatever is started there waits",
                         fmt::format("start `troupe worker --head {}` on each machine that is to "
                                     "run something",
                                     transport::format_endpoint(answer.at.host, answer.at.port)));
  }
  for (const auto& node : nodes) check_node(findings, node);
  check_shared_machines(findings, nodes);
}

}  // namespace troupe::cli
