#include "node/program/program.hpp"

#include <fstream>
#include <optional>

#include <capnp/message.h>
#include <elf.h>
#include <fcntl.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <troupe/errors.hpp>

#include "../../support/id_literals.hpp"
#include "built.hpp"
#include "guard.hpp"
#include "node/limits/gpus.hpp"
#include "node/node.hpp"
#include "node/program/elf.hpp"
#include "node/program/program_cache.hpp"
#include "node/program/program_check.hpp"
#include "node/spawn/zygote_wire.hpp"
#include "os/machine.hpp"
#include "test_program.hpp"
#include "waiting.hpp"

namespace troupe::node {
namespace {

using namespace std::chrono_literals;
using troupe::test::kGuard;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::variant<ElfNeeds, NotElf> read_elf_at(const std::filesystem::path& path) {
  os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file);
  return read_elf(file.get());
}

std::string missing_libraries(const std::filesystem::path& path) {
  asio::io_context loop;
  Reaper reaper(loop);
  std::optional<std::string> missing;
  find_missing_libraries(loop, reaper, path, kGuard, [&](std::string found) { missing = found; });
  test::run_until(
      loop, "the loader's answer", [&] { return missing && reaper.size() == 0; }, kGuard);
  return *missing;
}

TEST_CASE("a process describes its own program, and the description survives the wire",
          "[node][program]") {
  const char* arguments[] = {"sweep", "--lr", "0.1"};
  const auto program = describe_program(3, arguments);
  CHECK(program.path == test::self_path());
  CHECK(why_changed(program).empty());

  capnp::MallocMessageBuilder message;
  auto wire = message.initRoot<wire::Program>();
  write_program(wire, program);
  const auto back = read_program(wire.asReader());
  CHECK(back.path == program.path);
  CHECK(back.machine == program_machine_id());
  CHECK(back.inode == program.inode);
  CHECK(back.mtime_ns == program.mtime_ns);
  CHECK(back.arguments == std::vector<std::string>{"sweep", "--lr", "0.1"});
  CHECK(back.directory == std::filesystem::current_path());
  CHECK(!back.sha256);
  CHECK(os::machine_id() != program_machine_id());
}

TEST_CASE("a change of the program's file is seen", "[node][program]") {
  auto program = describe_program(0, nullptr);
  SECTION("newer") { program.mtime_ns -= 1; }
  SECTION("another file") { program.inode += 1; }
  SECTION("longer") { program.size -= 1; }
  CHECK_THAT(why_changed(program), Catch::Contains("was rebuilt since the driver started"));
  program.path = "/not/here";
  CHECK_THAT(why_changed(program), Catch::Contains("cannot be found any more"));
}

TEST_CASE("the driver serves its program in chunks that end, and its digest", "[node][program]") {
  ProgramImage image;
  const auto whole = bytes_of(test::self_path());
  Sha256 hash;
  hash.update(whole.data(), whole.size());
  CHECK(image.sha256() == hash.finish());

  std::string served;
  for (;;) {
    capnp::MallocMessageBuilder message;
    auto request = message.initRoot<wire::ProgramRequest>();
    request.setOffset(served.size());
    capnp::MallocMessageBuilder answer;
    auto chunk = answer.initRoot<wire::ProgramChunk>();
    serve_program_request(image, request.asReader(), chunk);
    if (chunk.getData().size() == 0) break;
    served.append(chunk.asReader().getData().asChars().begin(), chunk.getData().size());
  }
  CHECK(served == whole);
}

TEST_CASE("this executable can run here, one of another machine cannot", "[node][elf]") {
  const auto own = std::get<ElfNeeds>(read_elf_at(test::self_path()));
  CHECK(why_not_here(own).empty());
  CHECK(!own.loader.empty());

  auto other = own;
  other.machine = own.machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
  CHECK_THAT(why_not_here(other),
             Catch::Contains("it is built for") && Catch::Contains("build it for"));
  auto no_loader = own;
  no_loader.loader = "/lib/ld-musl-x86_64.so.1-not-here";
  CHECK_THAT(
      why_not_here(no_loader),
      Catch::Contains("its dynamic loader /lib/ld-musl-x86_64.so.1-not-here is not on this node"));
}

TEST_CASE("an executable for an instruction set that this processor lacks is refused",
          "[node][elf]") {
  auto needs = std::get<ElfNeeds>(read_elf_at(test::self_path()));
  if (needs.machine != EM_X86_64) return;
  needs.isa_needed = 1U << 7;  // no such level exists yet
  CHECK_THAT(why_not_here(needs), Catch::Contains("it needs the instruction set x86-64-v8"));
}

TEST_CASE("no file makes the reader of executables fail in another way than by saying so",
          "[node][elf]") {
  test::TemporaryDirectory directory;
  const auto path = directory.path / "program";
  const auto whole = bytes_of(test::self_path()).substr(0, 4096);
  for (std::size_t size : {0, 3, 4, 19, 20, 63, 64, 100, 600}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto read = read_elf_at(path);
    CHECK((std::holds_alternative<NotElf>(read) || size >= 64));
  }
  for (std::size_t at = 16; at < 1024; at += 3) {
    auto spoiled = whole;
    spoiled[at] = static_cast<char>(0xff);
    std::ofstream(path, std::ios::binary) << spoiled;
    read_elf_at(path);
  }
}

TEST_CASE("missing shared libraries are found and named without running the program",
          "[node][elf]") {
  test::TemporaryDirectory directory;
  const auto patched = directory.path / "program";
  test::write_with_missing_library(patched);
  CHECK_THAT(missing_libraries(patched), Catch::Contains("libnotthere.so"));
  CHECK(missing_libraries(test::self_path()).empty());
}

TEST_CASE("the loader's listing is read", "[node][elf]") {
  CHECK(missing_in("\tlibfoo.so.2 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n\tlibbar.so "
                   "=> not found\n") == "libfoo.so.2, libbar.so");
  CHECK(missing_in("prog: /lib/libc.so.6: version `GLIBC_2.99' not found (required by prog)\n") ==
        "prog: /lib/libc.so.6: version `GLIBC_2.99' not found (required by prog)");
  CHECK(missing_in("\tlibc.so.6 => /lib/libc.so.6 (0x1)\n").empty());
}

Digest digest_of_text(const std::string& text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.finish();
}

CachedProgram put(ProgramCache& cache, const std::string& text) {
  auto entry = cache.begin();
  REQUIRE(entry.append(text.data(), text.size()).empty());
  return cache.commit(std::move(entry), digest_of_text(text));
}

TEST_CASE("the cache keeps to its limit by removing what was not used for longest",
          "[node][cache]") {
  test::TemporaryDirectory directory;
  ProgramCache cache(directory.path / "cache", 250);
  const std::string a(100, 'a'), b(100, 'b'), c(100, 'c'), d(1000, 'd');
  auto age = [&](const std::string& text, int seconds) {
    const auto path = directory.path / "cache" / to_hex(digest_of_text(text));
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  put(cache, a);
  put(cache, b);
  age(a, 100);
  age(b, 200);
  CHECK(cache.find(digest_of_text(b)));  // used now
  put(cache, c);
  CHECK(!cache.find(digest_of_text(a)));
  CHECK(cache.find(digest_of_text(b)));
  CHECK(cache.find(digest_of_text(c)));
  put(cache, d);  // larger than the limit, but wanted now
  CHECK(cache.find(digest_of_text(d)));
  CHECK(!cache.find(digest_of_text(b)));
}

TEST_CASE("the cache hands out only what has the digest", "[node][cache]") {
  test::TemporaryDirectory directory;
  ProgramCache cache(directory.path / "cache", 1000);
  const auto path = put(cache, "a program").path;
  CHECK((std::filesystem::status(directory.path / "cache").permissions() &
         std::filesystem::perms::all) == std::filesystem::perms::owner_all);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::ofstream(path) << "another one";
  CHECK(!cache.find(digest_of_text("a program")));
  CHECK(!std::filesystem::exists(path));

  auto entry = cache.begin();
  REQUIRE(entry.append("damaged", 7).empty());
  CHECK_THROWS_AS(cache.commit(std::move(entry), digest_of_text("a program")), Error);
  { auto abandoned = cache.begin(); }
  CHECK(std::filesystem::is_empty(directory.path / "cache"));
}

TEST_CASE("no GPU is found where NVIDIA's library is not", "[node][gpus]") {
  CHECK(find_gpus(nullptr, "libnvidia-not-there.so.1").empty());
  CHECK(find_gpus(nullptr, "libc.so.6").empty());  // a library without its functions
}

TEST_CASE("GPUs are read from NVIDIA's library, and only those that CUDA_VISIBLE_DEVICES leaves",
          "[node][gpus]") {
  const auto library = TROUPE_FAKE_NVML;
  const auto all = find_gpus(nullptr, library.c_str());
  REQUIRE(all.size() == 2);
  CHECK(all[0].uuid == "GPU-00");
  CHECK(all[1].index == 2);
  CHECK(all[1].name == "Test GPU");
  CHECK(all[1].memory_bytes == 80'000'000'000);
  CHECK(lost_gpus(library.c_str()) == std::vector<std::uint32_t>{1});
  CHECK(find_gpus("", library.c_str()).empty());
  REQUIRE(find_gpus("2", library.c_str()).size() == 1);
  CHECK(find_gpus("2", library.c_str())[0].uuid == "GPU-22");
  CHECK(find_gpus("GPU-22,0", library.c_str())[0].index == 2);
  CHECK(find_gpus("0,7,2", library.c_str()).size() == 1);  // up to the first that is not there
}

TEST_CASE("GPUs are shown by their UUID, or by number where they have none", "[node][gpus]") {
  // Two of more: CUDA_VISIBLE_DEVICES was "2,5", or the others have fallen off the bus.
  const std::vector<Gpu> gpus{{2, "GPU-aa", "", 0}, {5, "", "", 0}};
  CHECK(visible_devices(gpus, {0}) == "GPU-aa");
  CHECK(visible_devices(gpus, {1, 0}) == "5,GPU-aa");
  CHECK(visible_devices(gpus, {2, 0}) == "2,GPU-aa");
  CHECK(visible_devices(gpus, {}).empty());
}

TEST_CASE("packets between node and zygote survive, and nonsense is refused", "[node][zygote]") {
  const ZygotePacket packet{ZygotePacket::Kind::Fork, 12, 34_process, {"log", "", "A=b"}};
  const auto bytes = encode(packet);
  const auto back = decode(bytes.data(), bytes.size());
  REQUIRE(back);
  CHECK(back->process == 34_process);
  CHECK(back->pid == 12);
  CHECK(back->texts == packet.texts);
  CHECK(!decode(bytes.data(), 3));
  CHECK(!decode(bytes.data(), bytes.size() - 1));  // the last text is not closed
  const std::string nonsense(64, '\xff');
  CHECK(!decode(nonsense.data(), nonsense.size()));
}

}  // namespace
}  // namespace troupe::node
