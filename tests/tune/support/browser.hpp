#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"

/// The page of a report, as a real browser draws it.
namespace troupe::tune {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

inline std::string printed_by(const std::string& command) {
  auto* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const auto got = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  ::pclose(pipe);
  return text;
}

inline bool has_browser() {
  if (!printed_by("command -v chromium").empty()) return true;
  std::cout << "skipped: there is no chromium here; ./run setup installs it\n";
  return false;
}

/// What the page's script draws from.
inline nlohmann::json data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// What of the page the script drew. Fails where the script did not come to its end. `folder` is
/// the browser's.
inline std::string drawn_by_browser(const std::filesystem::path& folder,
                                    const std::filesystem::path& page) {
  const auto dom = printed_by("cd " + folder.string() +
                              " && timeout 60 chromium --headless --no-sandbox --disable-gpu "
                              "--user-data-dir=browser --dump-dom file://" +
                              page.string() + " 2>browser.log");
  const auto from = std::min(dom.find("<header>"), dom.size());
  INFO(content_of(folder / "browser.log"));
  REQUIRE_THAT(dom, Catch::Contains(R"(data-drawn="true")"));
  return dom.substr(from, dom.find(R"(<script type="application/json")", from) - from);
}

/// The same, of the report in a run's folder.
inline std::string drawn_report(const TemporaryFolder& folder, const std::filesystem::path& run) {
  return drawn_by_browser(folder.path(), run / "report.html");
}

/// Of one section of the page.
inline std::string section_of(const std::string& drawn, const std::string& id) {
  const auto from = drawn.find("<section id=\"" + id + "\"");
  REQUIRE(from != std::string::npos);
  return drawn.substr(from, drawn.find("</section>", from) - from);
}

/// One that was drawn: `hint` is what a reader sees who points at it, or the text that it is.
struct Shape {
  std::map<std::string, std::string> attributes;
  std::string hint;
  double number(const std::string& name) const { return std::stod(attributes.at(name)); }
  const std::string& kind() const { return attributes.at("class"); }
};

/// The elements of that name, in their order.
inline std::vector<Shape> shapes_in(const std::string& section, const std::string& element) {
  const std::regex tag("<" + element + "( [^>]*)?>(<title>)?([^<]*)");
  const std::regex attribute("([a-z0-9-]+)=\"([^\"]*)\"");
  std::vector<Shape> shapes;
  for (std::sregex_iterator at(section.begin(), section.end(), tag), end; at != end; ++at) {
    Shape shape{.attributes = {}, .hint = (*at)[3]};
    const std::string inside = (*at)[1];
    for (std::sregex_iterator each(inside.begin(), inside.end(), attribute); each != end; ++each)
      shape.attributes[(*each)[1]] = (*each)[2];
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

/// Those of one class, the first of its words.
inline std::vector<Shape> shapes_in(const std::string& section, const std::string& element,
                                    const std::string& kind) {
  auto shapes = shapes_in(section, element);
  std::erase_if(shapes, [&](const Shape& shape) {
    const auto at = shape.attributes.find("class");
    return at == shape.attributes.end() || (at->second + " ").find(kind + " ") != 0;
  });
  return shapes;
}

}  // namespace troupe::tune
