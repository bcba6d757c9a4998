#include "experiment/journal_lines.hpp"

#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "text/checksum.hpp"

namespace troupe::tune {
namespace {

constexpr auto* kNumber = "number";
constexpr auto* kChecksum = "crc";
constexpr std::string_view kBegin = R"({"journal":)";
constexpr std::string_view kNumberKey = R"("number":)";

/// Of a line with a right checksum; none: it has no number.
std::optional<std::uint64_t> number_in(std::string_view line) {
  const auto text = before_checksum(line);
  const auto at = text.rfind(kNumberKey);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto* begin = text.data() + at + kNumberKey.size();
  const auto* end = text.data() + text.size() - 1;  // a comma
  const auto [stop, failed] = std::from_chars(begin, end, number);
  return failed == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// Where the line says that another version wrote it.
void refuse_other_version(std::string_view line) {
  const auto json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("journal")) return;
  const auto& said = json.at("journal");
  if (!said.is_number_integer() || said == kJournalVersion) return;
  const auto version = said.get<std::int64_t>();
  throw OtherVersion(
      fmt::format("the journal was written by {} Troupe: its version is {}, this one reads {}",
                  version > kJournalVersion ? "a newer" : "an older", version, kJournalVersion));
}

/// -> the line's number. Throws DamagedLine.
std::uint64_t checked_number(std::string_view line, std::size_t at) {
  const auto checksum = look_at_checksum(line);
  if (checksum == Checksum::Wrong)
    throw DamagedLine(at, line, "its checksum is not that of its text, which was altered");
  const auto number = checksum == Checksum::Right ? number_in(line) : std::nullopt;
  if (!number) throw DamagedLine(at, line, "it has no number and no checksum");
  return *number;
}

std::uint64_t checked_first_number(std::string_view line) {
  // Versions before 5 had no checksum.
  if (look_at_checksum(line) != Checksum::Wrong) refuse_other_version(line);
  const auto number = checked_number(line, 1);
  if (!line.starts_with(kBegin))
    throw DamagedLine(1, line, "it is not the first line of a journal");
  return number;
}

void check_order(std::uint64_t number, std::uint64_t due, std::string_view line, std::size_t at) {
  if (number == due) return;
  throw DamagedLine(
      at, line,
      fmt::format("it has the number {} where {} is due: {}", number, due,
                  number > due ? "lines are missing before it, or lines were exchanged"
                               : "it stands there twice, or lines were exchanged"));
}

}  // namespace

DamagedLine::DamagedLine(std::size_t number, std::string_view line, const std::string& why)
    : std::invalid_argument(fmt::format("line {} of the journal: {}", number, why)),
      number_{number},
      text_{fmt::format("{}: {}", why, dump(line.substr(0, 80)))} {}

std::string numbered_line(std::string object, std::uint64_t number) {
  object.pop_back();
  const auto* comma = object.size() > 1 ? "," : "";
  return with_checksum(fmt::format("{}{}{}{}}}", object, comma, kNumberKey, number));
}

std::size_t for_lines(std::string_view journal,
                      const std::function<void(std::string_view line, std::size_t number)>& take) {
  std::size_t start = 0, at = 0;
  std::uint64_t before = 0;  // the number of the line before
  for (auto end = journal.find('\n'); end != std::string_view::npos;
       end = journal.find('\n', start)) {
    const auto line = journal.substr(start, end - start);
    if (++at == 1) {
      before = checked_first_number(line);
    } else {
      check_order(checked_number(line, at), ++before, line, at);
    }
    if (take) take(line, at);
    start = end + 1;
  }
  return start;
}

Json first_line_of(std::string_view journal) {
  const auto end = journal.find('\n');
  if (end == std::string_view::npos) throw std::invalid_argument("the journal has no first line");
  const auto line = journal.substr(0, end);
  checked_first_number(line);
  auto header = parse(line, "the first line of a journal");
  header.erase(kNumber);
  header.erase(kChecksum);
  return header;
}

std::uint64_t events_before(std::string_view journal) {
  const auto line = journal.substr(0, journal.find('\n'));
  return look_at_checksum(line) == Checksum::Right ? number_in(line).value_or(0) : 0;
}

}  // namespace troupe::tune
