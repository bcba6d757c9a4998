#include <troupe/tune/decision.hpp>

#include <array>

namespace troupe::tune {

const std::string& why_of(const Decision& decision) {
  return std::visit([](const auto& each) -> const std::string& { return each.why; }, decision);
}

std::optional<int> rung_of(const Decision& decision) {
  if (const auto* go_on = std::get_if<GoOn>(&decision)) return go_on->rung;
  if (const auto* stop = std::get_if<Stop>(&decision)) return stop->rung;
  if (const auto* pause = std::get_if<Pause>(&decision)) return pause->rung;
  return std::nullopt;
}

const std::string& notice_of(const Decision& decision) {
  static const std::string none;
  if (const auto* go_on = std::get_if<GoOn>(&decision)) return go_on->notice;
  if (const auto* pause = std::get_if<Pause>(&decision)) return pause->notice;
  return none;
}

std::string_view name_of(const Decision& decision) {
  constexpr std::array<std::string_view, std::variant_size_v<Decision>> names{
      "continue", "stop", "finish", "pause", "exploit"};
  return names[decision.index()];
}

}  // namespace troupe::tune
