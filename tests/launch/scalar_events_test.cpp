#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "support/cluster.hpp"
#include "sweep/scalar_events.hpp"

using namespace troupe;
using namespace troupe::launch;
using troupe::test::TemporaryFolder;

/// Reports that are read from TensorBoard's files. What a real writer writes is in
/// sweep_files_test.cpp.
namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
template <class Value>
std::string bytes_of(Value value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string simple_value(const std::string& tag, float value) {
  return field(1, field(1, tag) + varint(2 << 3 | 5) + bytes_of(value));
}
std::string tensor(const std::string& tag, std::uint64_t type, const std::string& content) {
  return field(1, field(1, tag) + field(8, varint(1 << 3) + varint(type) + field(4, content)));
}
std::string event(std::int64_t step, const std::string& values) {
  return varint(1 << 3 | 1) + bytes_of(1.5) + varint(2 << 3) +
         varint(static_cast<std::uint64_t>(step)) + field(5, values);
}
std::string record(const std::string& bytes) {
  return bytes_of(std::uint64_t{bytes.size()}) + "crc1" + bytes + "crc2";
}

}  // namespace

TEST_CASE("scalars are read as TensorFlow 1, PyTorch and TensorFlow 2 write them",
          "[launch][tensorboard]") {
  const auto found =
      scalars_in(event(7, simple_value("loss", 0.25F) + tensor("accuracy", 1, bytes_of(0.5F)) +
                              tensor("speed", 2, bytes_of(3.0)) + tensor("text", 7, "abcd") +
                              tensor("image", 1, "12345678")));
  REQUIRE(found.size() == 3);
  CHECK((found[0].tag == "loss" && found[0].value == 0.25 && found[0].step == 7));
  CHECK((found[1].tag == "accuracy" && found[1].value == 0.5));
  CHECK((found[2].tag == "speed" && found[2].value == 3.0));
}

TEST_CASE("what is no event has no scalars", "[launch][tensorboard]") {
  const auto whole = event(7, simple_value("loss", 0.25F));
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    CHECK(scalars_in(whole.substr(0, cut)).empty());
  CHECK(scalars_in(std::string(100, '\xff')).empty());
  CHECK(scalars_in("text").empty());
}

TEST_CASE("event files are followed as they grow, from where they were", "[launch][tensorboard]") {
  const TemporaryFolder folder;
  const auto path = folder.path() + "/below/events.out.tfevents.1";
  std::filesystem::create_directory(folder.path() + "/below");
  const auto append = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  };
  append(record(event(1, simple_value("loss", 9))));
  ScalarEvents events(folder.path());
  CHECK(events.read("loss", true).empty());
  append(record(event(2, simple_value("lr", 0.5F))));
  const auto last = record(event(2, simple_value("loss", 0.25F)));
  append(last.substr(0, 9));
  CHECK(events.read("loss", true).empty());
  append(last.substr(9));
  append(record(event(3, simple_value("loss", 0.125F))).substr(0, 20));
  const auto reports = events.read("loss", true);
  REQUIRE(reports.size() == 1);
  REQUIRE(reports[0].size() == 3);
  CHECK((reports[0][0].name == "lr" && reports[0][0].value == 0.5));
  CHECK((reports[0][1].name == "loss" && reports[0][1].value == 0.25));
  CHECK((reports[0][2].name == "step" && reports[0][2].value == 2));
  CHECK(ScalarEvents(folder.path() + "/none").read("loss", true).empty());
}
