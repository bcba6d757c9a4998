#include "session/output/output_printer.hpp"

#include <string>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <troupe/detail/terminal_picture.hpp>

#include "guard.hpp"
#include "os/unique_fd.hpp"
#include "transport/connection.hpp"

namespace troupe::runtime {
namespace {

using namespace std::chrono_literals;
using test::kGuard;

struct Pipe {
  os::UniqueFd read_end, write_end;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

void give(OutputPrinter& printer, const std::string& lines, std::uint64_t number = 7) {
  transport::Outgoing message;
  auto output = message.root().initWorkerOutput();
  output.setNodeName("w1");
  auto process = output.initProcesses(1)[0];
  process.setProcess(number);
  process.setPid(4711);
  process.setLabel("fib");
  process.setLines(
      capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(lines.data()), lines.size()));
  printer.take(message.root().getWorkerOutput());
}

/// What comes until it is `bytes`, and what else is there then. A terminal hands over in pieces, and
/// later, what was written to it at once.
std::string read_from(int file, std::size_t bytes) {
  std::string text;
  for (pollfd ready{.fd = file, .events = POLLIN, .revents = 0}; text.size() < bytes;) {
    if (::poll(&ready, 1, std::chrono::milliseconds(kGuard).count()) != 1) break;
    char piece[1000];
    const auto come = ::read(file, piece, sizeof piece);
    if (come <= 0) break;
    text.append(piece, static_cast<std::size_t>(come));
  }
  return text;
}

TEST_CASE("each line is printed with who it was", "[runtime][output]") {
  Pipe pipe;
  {
    OutputPrinter printer(pipe.write_end.get());
    give(printer, "one\n\n");
    printer.finish(kGuard);
  }
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(pipe.read_end.get(), text.data(), text.size())));
  CHECK(text == "(fib process=7 pid=4711 node=w1) one\n(fib process=7 pid=4711 node=w1) \n");
}

TEST_CASE("what was left out is in a file that is named, and asked for where others can ask",
          "[runtime][output]") {
  for (const bool is_private : {false, true}) {
    Pipe pipe;
    {
      OutputPrinter printer(pipe.write_end.get(), true, is_private);
      transport::Outgoing message;
      auto output = message.root().initWorkerOutput();
      output.setNodeName("w1");
      auto process = output.initProcesses(1)[0];
      process.setProcess(7);
      process.setPid(4711);
      process.setLeftOut(2048);
      process.setLog("/logs/process-7.log");
      printer.take(message.root().getWorkerOutput());
      printer.finish(kGuard);
    }
    std::string text(1000, '\0');
    text.resize(static_cast<std::size_t>(::read(pipe.read_end.get(), text.data(), text.size())));
    CHECK(text ==
          std::string("troupe: 2.0 KiB of what (process=7 pid=4711 node=w1) printed are left out "
                      "here: it was too much in a second; its log has all: /logs/process-7.log") +
              (is_private ? "\n" : " (`troupe logs process 7`)\n"));
  }
}

TEST_CASE("the last line of each process is known, of the youngest thousand", "[runtime][output]") {
  Pipe pipe;
  OutputPrinter printer(pipe.write_end.get());
  give(printer, "one\ntwo\n", 7);
  give(printer, std::string(1000, 'x') + "\n", 8);
  CHECK(printer.last_line_of(ProcessId(7)) == "two");
  CHECK(printer.last_line_of(ProcessId(8)) == std::string(200, 'x'));
  CHECK(printer.last_line_of(ProcessId(9)).empty());
  for (std::uint64_t process = 9; process < 8 + OutputPrinter::kMostLastLines; ++process)
    give(printer, "x\n", process);
  CHECK(printer.last_line_of(ProcessId(7)).empty());
  CHECK_FALSE(printer.last_line_of(ProcessId(8)).empty());
}

TEST_CASE("where lines say themselves who prints, they are printed as they are",
          "[runtime][output]") {
  Pipe pipe;
  {
    OutputPrinter printer(pipe.write_end.get(), false);
    give(printer, "[trial 3] one\n\n");
    printer.finish(kGuard);
  }
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(pipe.read_end.get(), text.data(), text.size())));
  CHECK(text == "[trial 3] one\n\n");
}

TEST_CASE("a line of several processes is printed with their number instead of one of them",
          "[runtime][output]") {
  Pipe pipe;
  {
    OutputPrinter printer(pipe.write_end.get());
    for (std::uint64_t process = 7; process <= 9; ++process) give(printer, "step\n", process);
    printer.finish(kGuard);
  }
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(pipe.read_end.get(), text.data(), text.size())));
  CHECK(text == "(fib process=7 pid=4711 node=w1) step\n(fib processes=2) step [2 times]\n");
}

TEST_CASE("a line goes above what is drawn in place on the same terminal, which is drawn again",
          "[runtime][output]") {
  int ours = -1, other = -1;
  REQUIRE(::openpty(&ours, &other, nullptr, nullptr, nullptr) == 0);
  const os::UniqueFd master(ours), terminal(other);
  auto& picture = detail::TerminalPicture::of_process();
  const auto write = [&](const std::string& text) {
    REQUIRE(::write(terminal.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  Pipe pipe;
  {
    OutputPrinter to_terminal(terminal.get()), elsewhere(pipe.write_end.get());
    picture.draw(terminal.get(), "head\nrow\n", write);
    give(to_terminal, "one\n");
    to_terminal.finish(kGuard);
    give(elsewhere, "two\n");
    elsewhere.finish(kGuard);
    picture.leave(terminal.get());
  }
  const std::string expected =
      "\x1b[Jhead\r\nrow\r\n\x1b[2A\r\x1b[J"
      "(fib process=7 pid=4711 node=w1) one\r\nhead\r\nrow\r\n";
  CHECK(read_from(master.get(), expected.size()) == expected);
  std::string piped(1000, '\0');
  piped.resize(static_cast<std::size_t>(::read(pipe.read_end.get(), piped.data(), piped.size())));
  CHECK(piped == "(fib process=7 pid=4711 node=w1) two\n");
}

TEST_CASE("a terminal that takes nothing holds up neither who prints nor the end",
          "[runtime][output]") {
  Pipe pipe;
  OutputPrinter printer(pipe.write_end.get());
  for (int i = 0; i < 100; ++i) give(printer, std::string(100'000, 'x') + '\n');
  // Who waited for the terminal before would wait for ever: nobody reads it.
  const auto end = std::chrono::steady_clock::now();
  printer.finish(200ms);
  CHECK(std::chrono::steady_clock::now() - end >= 200ms);
}

}  // namespace
}  // namespace troupe::runtime
