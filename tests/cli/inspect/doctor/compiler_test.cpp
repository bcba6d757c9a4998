// What the doctor says of the compiler that it finds.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "doctor/examined.hpp"

using namespace troupe::test;
using Catch::Contains;

TEST_CASE("the doctor notes a g++ that is too old, and that there is none", "[cli][doctor]") {
  const Alone alone;
  const auto& folder = alone.folder.path();
  const auto path = "PATH=" + folder;
  const auto missing = alone.doctor_with({path});
  CHECK(missing.level("g++") == "note");
  CHECK(missing.value("g++") == "not found");
  CHECK_THAT(missing.remedy("g++"), Contains("install g++ 12 or later"));
  const auto install = [&](const std::string& version) {
    const auto compiler = folder + "/g++";
    std::ofstream(compiler) << "#!/bin/sh\necho " << version << '\n' << std::flush;
    std::filesystem::permissions(compiler, std::filesystem::perms(0700));
  };
  install("9.5.0");
  const auto old = alone.doctor_with({path});
  CHECK(old.level("g++") == "note");
  CHECK(old.value("g++") == "9.5.0");
  CHECK_THAT(old.remedy("g++"), Contains("install g++ 12 or later"));
  install("14.2.0");
  CHECK(alone.doctor_with({path}).level("g++") == "ok");
}
