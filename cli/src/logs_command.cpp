#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <boost/algorithm/hex.hpp>

#include <troupe/errors.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/token.hpp"
#include "output.hpp"
#include "store/types.hpp"

namespace troupe::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostBytes = 1 << 20;  // of each node, of one answer
constexpr std::chrono::milliseconds kLook{500};

/// What the head has sent of some logs, and how far that is.
class Printer {
 public:
  /// `names`: of each line's process, which is one of several.
  explicit Printer(bool names) : names_(names) {}

  /// -> there is more to be asked for at once.
  bool print(const json& answer) {
    bool more = false;
    for (const auto& part : answer.at("parts")) {
      print_part(part);
      more = more || (part.at("more").get<bool>() &&
                      !part.at("text").get_ref<const std::string&>().empty());
    }
    flush_output();
    return more;
  }
  const std::map<std::string, std::uint64_t>& places() const { return places_; }

 private:
  void print_part(const json& part) {
    const auto text = boost::algorithm::unhex(part.at("text").get<std::string>());
    const auto process = std::to_string(part.at("process").get<std::uint64_t>());
    const auto next = part.at("next").get<std::uint64_t>();
    if (!places_.contains(process) && next > text.size()) {
      say(stderr,
          fmt::format("troupe: the first {} of process {} are left out: they are in {} of "
                      "node {}\n",
                      store::format_bytes(next - text.size()), process,
                      part.at("file").get<std::string>(), part.at("node_name").get<std::string>()));
    }
    places_[process] = next;
    const auto name = names_ ? fmt::format("(process={} node={}) ", process,
                                           part.at("node_name").get<std::string>())
                             : std::string();
    for (std::string_view rest = text; !rest.empty();) {
      const auto end = rest.find('\n');
      fmt::print("{}{}\n", name, rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
  }

  const bool names_;
  std::map<std::string, std::uint64_t> places_;  // by process
};

}  // namespace

int run_logs(const LogsArguments& arguments) {
  auto head = find_head(arguments.head);
  const auto token = config::find_token(arguments.token_file);
  Printer printer(arguments.what == "job");
  auto what = arguments.what;
  auto which = arguments.which;
  for (bool first = true;; first = false) {
    const auto answer = ask_head(head, token,
                                 {{"do", "logs"},
                                  {what, which},
                                  {"known", printer.places()},
                                  {"follows", arguments.follow},
                                  {"most", kMostBytes}});
    if (answer.contains("error"))
      raise({.kind = Failure::Kind::Refused, .message = answer.at("error").get<std::string>()});
    head.file.clear();  // it was there: that it is gone later says nothing of the file
    const bool more = printer.print(answer);
    // The name of an actor is its own while it lives; its last words come after that.
    if (what == "actor" && !answer.at("parts").empty()) {
      what = "process";
      which = answer.at("parts").at(0).at("process").dump();
    }
    for (const auto& node : answer.at("silent"))
      say(stderr, fmt::format("troupe: node {} has not answered\n", node.get<std::string>()));
    if (first && answer.at("parts").empty()) {
      say(stderr, fmt::format("troupe: no node that is there has a log of {} {}\n", arguments.what,
                              arguments.which));
      if (!arguments.follow) return 1;
    }
    if (!arguments.follow) return 0;
    if (answer.at("over").get<bool>() && !answer.at("parts").empty() && !more) {
      say(stderr, fmt::format("troupe: {} {} has ended\n", arguments.what, arguments.which));
      return 0;
    }
    if (!more) std::this_thread::sleep_for(kLook);
  }
}

}  // namespace troupe::cli
