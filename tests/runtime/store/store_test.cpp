#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <sys/wait.h>
#include <csignal>

#include <fmt/format.h>

#include "../../support/id_literals.hpp"
#include "../../support/stopped.hpp"
#include "harness.hpp"
#include "namespaces.hpp"

using namespace troupe::store;
using namespace troupe::store::test;

namespace {

/// "7.42" -> {7, 42}
ObjectId parse(const std::string& text) {
  const auto dot = text.find('.');
  return {ProcessId(std::stoull(text.substr(0, dot))), std::stoull(text.substr(dot + 1))};
}

/// Writes one object and waits; then ends.
void put_and_wait(Worker& worker, std::uint64_t bytes, char fill, ProcessId owner = {}) {
  worker.tell(to_string(worker.put(bytes, fill, owner)));
  worker.hear();
}

}  // namespace

#if defined(__SANITIZE_THREAD__)

TEST_CASE("processes that share a store", "[store][processes]") {
  WARN(
      "skipped: ThreadSanitizer cannot start threads in a child that was forked by a process with "
      "threads");
}

#else

TEST_CASE("what one process writes another one reads, in the same memory", "[store][processes]") {
  TestNode node(options_for_test(64 * kMiB));
  WorkerProcess writer(node, 1_process, 1_job,
                       [](Worker& worker) { put_and_wait(worker, 5 * kMiB + 3, 'a'); });
  WorkerProcess reader(node, 2_process, 1_job, [](Worker& worker) {
    const auto view = worker.view(parse(worker.hear()));
    require(is_filled(view->bytes(), 5 * kMiB + 3, 'a'), "all bytes are as written");
    worker.tell("seen");
    worker.hear();
  });
  reader.tell(writer.hear());
  CHECK(reader.hear() == "seen");

  // One copy, whoever looks at it.
  CHECK(node.statistics().object_bytes == whole_pages(5 * kMiB + 3));
  CHECK(node.statistics().pinned_bytes == node.statistics().object_bytes);
  reader.tell("end");
  CHECK(reader.join() == 0);
  writer.tell("end");
  CHECK(writer.join() == 0);
  CHECK(node.statistics().objects == 0);
}

TEST_CASE("a process that is killed while it writes leaves nothing", "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess writer(node, 1_process, 1_job, [](Worker& worker) {
    auto writable = worker.create(12 * kMiB);
    std::ranges::fill(writable.bytes().first(6 * kMiB), std::byte{1});
    worker.tell(to_string(writable.object()));
    worker.hear();
  });
  const auto object = writer.hear();
  WorkerProcess other(node, 2_process, 1_job, [](Worker& worker) {
    const auto wanted = parse(worker.hear());
    worker.tell("asks");
    require(worker.refused_view(wanted).kind == Refusal::Kind::Unknown, "it is not there any more");
    worker.put(16 * kMiB, 'b');
  });
  other.tell(object);
  CHECK(other.hear() == "asks");
  CHECK(node.statistics().object_bytes == 12 * kMiB);

  writer.kill();

  CHECK(node.statistics().object_bytes == 0);
  CHECK(other.join() == 0);
}

TEST_CASE("where all is in use a create is refused, with the numbers", "[store][processes]") {
  TemporaryDirectory directory;
  auto options = options_for_test(16 * kMiB, directory.path);
  options.patience = std::chrono::seconds(3);
  TestNode node(options);
  WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
    std::vector<ViewPtr> views;
    for (int i = 0; i < 4; ++i) views.push_back(worker.view(worker.put(3 * kMiB, 'a')));
    const auto refusal = worker.refused_create(6 * kMiB);
    worker.tell(fmt::format("{}: {}", static_cast<int>(refusal.kind), refusal.message));
    views.pop_back();
    worker.put(6 * kMiB, 'b');  // as soon as one of them is not in use, it goes to the disk
    for (const auto& view : views)
      require(is_filled(view->bytes(), 3 * kMiB, 'a'), "what is in use is as it was");
  });
  CHECK(worker.hear() ==
        fmt::format("{}: no memory for 6.0 MiB: the object store of this node may use 16.0 MiB, "
                    "and 12.0 MiB are taken: objects in use 12.0 MiB, objects that could go to the "
                    "disk 0 B, kept by processes 0 B",
                    static_cast<int>(Refusal::Kind::Full)));
  CHECK(worker.join() == 0);
}

TEST_CASE("who stands in a line for memory that moves is not refused, however long it takes",
          "[store][processes]") {
  auto options = options_for_test(20 * kMiB);
  options.patience = std::chrono::milliseconds(2000);
  TestNode node(options);
  WorkerProcess holder(node, 1_process, 1_job, [](Worker& worker) {
    std::vector<Writable> held;
    for (int i = 0; i < 5; ++i) held.push_back(worker.create(4 * kMiB));
    for (worker.tell("holds"); !held.empty(); held.pop_back()) worker.hear();
    worker.hear();
  });
  CHECK(holder.hear() == "holds");
  WorkerProcess line(node, 2_process, 1_job, [](Worker& worker) {
    using Made = std::variant<Writable, Refusal>;
    std::vector<std::future<Made>> line;
    std::vector<Made> all;
    for (int i = 0; i < 5; ++i) {
      auto made = std::make_shared<std::promise<Made>>();
      line.push_back(made->get_future());
      worker.client.create(4 * kMiB, 2_process,
                           [made](Made one) { made->set_value(std::move(one)); });
    }
    for (auto& one : line) all.push_back(one.get());
    for (const auto& one : all) require(std::holds_alternative<Writable>(one), "each has its turn");
  });
  node.run_until("the line", [&] { return node.statistics().waiting == 5; });
  for (int i = 0; i < 5; ++i) {
    const auto next = std::chrono::steady_clock::now() + options.patience / 3;
    node.run_until("the next turn", [&] { return std::chrono::steady_clock::now() > next; });
    holder.tell("free");
  }
  CHECK(line.join() == 0);
  holder.tell("end");
  CHECK(holder.join() == 0);
}

TEST_CASE("the time in which its node stands still is not taken from who waits",
          "[store][processes]") {
  auto options = options_for_test(16 * kMiB);
  options.patience = std::chrono::milliseconds(1500);
  TestNode node(options);
  WorkerProcess reader(node, 1_process, 1_job, [](Worker& worker) {
    const auto object = parse(worker.hear());
    worker.tell("asks");
    require(is_filled(worker.view(object)->bytes(), kMiB, 'a'), "it came in time");
  });
  WorkerProcess writer(node, 2_process, 1_job, [](Worker& worker) {
    auto writable = worker.create(kMiB);
    worker.tell(to_string(writable.object()));
    worker.hear();
    std::ranges::fill(writable.bytes(), std::byte{'a'});
    std::move(writable).seal();
    worker.tell("sealed");
    worker.hear();
  });
  reader.tell(writer.hear());
  CHECK(reader.hear() == "asks");
  node.run_until("the request", [&] { return node.statistics().waiting == 1; });
  std::this_thread::sleep_for(2 * options.patience);  // as one that is stopped, or starved
  // Its timers come before what was said meanwhile is read.
  const auto awake = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  node.run_until("its timers", [&] { return std::chrono::steady_clock::now() > awake; });
  writer.tell("seal");
  CHECK(writer.hear() == "sealed");
  CHECK(reader.join() == 0);
  writer.tell("end");
  CHECK(writer.join() == 0);
}

TEST_CASE("an object that could never fit is refused at once", "[store][processes]") {
  TestNode node(options_for_test(4 * kMiB));
  WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
    const auto refusal = worker.refused_create(4 * kMiB + 1);
    require(refusal.kind == Refusal::Kind::TooLarge, refusal.message);
    worker.put(4 * kMiB, 'a');
  });
  CHECK(worker.join() == 0);
}

TEST_CASE("what does not fit goes to the disk and comes back", "[store][processes]") {
  TemporaryDirectory directory;
  {
    TestNode node(options_for_test(16 * kMiB, directory.path));
    WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
      std::vector<ObjectId> objects;
      for (char fill = 'a'; fill < 'k'; ++fill) objects.push_back(worker.put(4 * kMiB - 5, fill));
      worker.tell("written");
      for (int round = 0; round < 3; ++round) {
        for (char fill = 'a'; const auto object : objects) {
          require(is_filled(worker.view(object)->bytes(), 4 * kMiB - 5, fill++),
                  "it came back as it was");
        }
      }
      for (const auto object : objects) worker.client.free(object);
      worker.tell("freed");
      worker.hear();
    });
    CHECK(worker.hear() == "written");
    CHECK(node.statistics().disk_bytes >= 6 * (4 * kMiB - 5));
    CHECK(worker.hear() == "freed");
    node.run_until("all is freed", [&] { return node.statistics().objects == 0; });
    CHECK(node.statistics().disk_bytes == 0);
    CHECK(node.statistics().restored > 10);
    const auto inside = entries_of(directory.path);
    REQUIRE(inside.size() == 1);
    node.run_until("the files are gone",
                   [&] { return entries_of(directory.path + "/" + inside[0]).empty(); });
    worker.tell("end");
    CHECK(worker.join() == 0);
  }
  CHECK(entries_of(directory.path).empty());
}

TEST_CASE("a full disk loses nothing", "[store][processes]") {
  const TinyDisk disk("/mnt", 6 * kMiB);
  if (!disk.why_not().empty()) {
    WARN("skipped: " << disk.why_not());
    return;
  }
  TestNode node(options_for_test(16 * kMiB, disk.path()));
  WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
    std::vector<ObjectId> objects;
    // One goes to the disk.
    for (char fill = 'a'; fill < 'f'; ++fill) objects.push_back(worker.put(4 * kMiB, fill));
    const auto refusal = worker.refused_create(4 * kMiB);
    require(refusal.kind == Refusal::Kind::DiskFull, refusal.message);
    worker.tell(refusal.message);
    for (std::size_t i = 1; i < objects.size(); ++i) {
      require(is_filled(worker.view(objects[i])->bytes(), 4 * kMiB, static_cast<char>('a' + i)),
              "the others are there");
    }
    worker.client.free(objects[1]);
    require(is_filled(worker.view(objects[0])->bytes(), 4 * kMiB, 'a'),
            "with room the first comes back");
  });
  const auto message = worker.hear();
  CHECK_THAT(message, Catch::Contains("no memory for 4.0 MiB") &&
                          Catch::Contains("could go to the disk 16.0 MiB"));
  CHECK_THAT(message, Catch::Contains("No space left on device") &&
                          Catch::Contains("2.0 MiB free of 6.0 MiB"));
  CHECK(worker.join() == 0);
}

TEST_CASE("where a cgroup caps memory the store says so, and nobody is killed",
          "[store][processes]") {
  const MemoryLimit limit(96 * kMiB);
  if (!limit.why_not().empty()) {
    WARN("skipped: " << limit.why_not());
    return;
  }
  const auto is_refused = [&] {
    if (!limit.enter()) return false;
    auto options = options_for_test(1024 * kMiB);
    options.spare_bytes = 16 * kMiB;
    TestNode node(options);
    auto [ours, theirs] = socket_pair();
    const auto attached = attach(node, 1_process, 1_job, std::move(ours));
    LocalClient local(attached.arena, 1_process, std::move(theirs));
    std::size_t objects = 0;
    std::optional<Refusal> refusal;
    const auto put = [&](std::variant<Writable, Refusal> made) {
      if (auto* writable = std::get_if<Writable>(&made)) {
        static_cast<void>(std::move(*writable).seal());
        ++objects;
      } else {
        refusal = std::get<Refusal>(made);
      }
    };
    while (!refusal && objects < 64) {
      const auto before = objects;
      local.client().create(8 * kMiB, 1_process, put);
      node.run_until("an answer", [&] { return refusal || objects > before; });
    }
    // Nothing can be spilled; what this process itself has counts as well.
    return objects >= 4 && objects <= 10 && refusal && refusal->kind == Refusal::Kind::MemoryFull &&
           refusal->message.find("troupe-test-") != std::string::npos &&
           refusal->message.find("left of 96.0 MiB") != std::string::npos;
  };
  CHECK(in_fork(is_refused));
}

TEST_CASE("what a job has another job cannot see", "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess writer(node, 1_process, 1_job,
                       [](Worker& worker) { put_and_wait(worker, kMiB, 'a'); });
  WorkerProcess stranger(node, 2_process, 2_job, [](Worker& worker) {
    const auto object = parse(worker.hear());
    require(worker.refused_view(object).kind == Refusal::Kind::Unknown, "it is unknown here");
    for (int i = 0; i < 4; ++i) {
      auto writable = worker.create(3 * kMiB);
      require(std::ranges::count(writable.bytes(), std::byte{'a'}) == 0,
              "new memory shows nothing of others");
    }
  });
  stranger.tell(writer.hear());
  CHECK(stranger.join() == 0);
  writer.tell("end");
  CHECK(writer.join() == 0);
}

TEST_CASE("an object goes with its owner, wherever it was written", "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess owner(node, 1_process, 1_job, [](Worker& worker) { worker.hear(); });
  WorkerProcess writer(node, 2_process, 1_job, [](Worker& worker) {
    const auto object = worker.put(kMiB, 'a', 1_process);
    const auto other = worker.put(kMiB, 'b', 1_process);
    const auto view = worker.view(object);
    worker.tell("written");
    worker.hear();
    require(is_filled(view->bytes(), kMiB, 'a'), "a view outlives the owner");
    require(worker.refused_view(other).kind == Refusal::Kind::Unknown, "no new one is given");
    auto made = worker.client.create(1, 1_process);
    require(std::holds_alternative<Refusal>(made), "nothing new is made for who has ended");
  });
  CHECK(writer.hear() == "written");
  CHECK(node.statistics().objects == 2);
  owner.kill();
  CHECK(node.statistics().objects == 1);  // the one that is in use
  writer.tell("go on");
  CHECK(writer.join() == 0);
  CHECK(node.statistics().objects == 0);
}

TEST_CASE("who asks before the object is complete gets it when it is", "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess writer(node, 1_process, 1_job, [](Worker& worker) {
    worker.hear();
    auto writable = worker.create(kMiB);
    worker.tell("writes");
    worker.hear();
    std::ranges::fill(writable.bytes(), std::byte{'z'});
    static_cast<void>(std::move(writable).seal());
    worker.hear();
  });
  WorkerProcess early(node, 2_process, 1_job, [](Worker& worker) {
    worker.tell("asks");
    require(is_filled(worker.view({1_process, 1})->bytes(), kMiB, 'z'), "it is complete");
  });
  CHECK(early.hear() == "asks");
  node.run_until("a get of what is not known", [&] { return node.statistics().waiting == 1; });
  writer.tell("make it");
  CHECK(writer.hear() == "writes");
  CHECK(node.statistics().waiting == 1);
  writer.tell("seal it");
  CHECK(early.join() == 0);
}

TEST_CASE("what a process has freed it uses again without asking, until others need it",
          "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
    for (int i = 0; i < 3; ++i) {
      const auto object = worker.put(10 * kMiB, 'a');
      worker.client.free(object);
      static_cast<void>(worker.refused_view(object));  // the answer comes after the memory
      worker.tell("freed");
      worker.hear();
    }
  });
  const auto keeps_after = [&](int frees) {
    node.run_until("the memory is kept", [&] {
      return node.received[troupe::wire::Message::OBJECT_FREE] == frees &&
             node.statistics().kept_bytes == 10 * kMiB;
    });
  };
  CHECK(worker.hear() == "freed");
  keeps_after(1);
  worker.tell("again");
  CHECK(worker.hear() == "freed");
  keeps_after(2);
  CHECK(node.statistics().warm_bytes == 0);

  WorkerProcess other(node, 2_process, 1_job, [](Worker& worker) { worker.put(12 * kMiB, 'b'); });
  CHECK(other.join() == 0);
  CHECK(node.received[troupe::wire::Message::OBJECT_RETURN] == 1);
  CHECK(node.statistics().kept_bytes == 0);
  worker.tell("again");
  CHECK(worker.hear() == "freed");
  worker.tell("end");
  CHECK(worker.join() == 0);
}

TEST_CASE("a view that was just dropped is there again without a message", "[store][processes]") {
  TestNode node(options_for_test(16 * kMiB));
  WorkerProcess worker(node, 1_process, 1_job, [](Worker& worker) {
    const auto object = worker.put(12 * kMiB, 'a');
    for (int i = 0; i < 1000; ++i)
      require(worker.view(object)->bytes().size() == 12 * kMiB, "it is there");
    worker.tell(to_string(object));
    worker.hear();
  });
  const auto object = worker.hear();
  CHECK(node.received[troupe::wire::Message::OBJECT_GET] == 1);
  CHECK(node.statistics().pinned_bytes == 12 * kMiB);

  SECTION("it goes when memory is needed") {
    node.service->free(1_job, parse(object));
    node.run_until("the object is gone", [&] { return node.statistics().objects == 0; });
  }
  SECTION("it goes with the process") {}
  worker.tell("end");
  CHECK(worker.join() == 0);
  CHECK(node.statistics().objects == 0);
}

TEST_CASE("views that are in use when memory becomes short go with their last user",
          "[store][processes]") {
  TemporaryDirectory directory;
  TestNode node(options_for_test(16 * kMiB, directory.path));
  WorkerProcess reader(node, 1_process, 1_job, [](Worker& worker) {
    std::vector<ViewPtr> views;
    for (int i = 0; i < 2; ++i) views.push_back(worker.view(worker.put(6 * kMiB, 'a')));
    worker.tell("looks at two");
    worker.hear();
    views.clear();
    worker.hear();
  });
  CHECK(reader.hear() == "looks at two");
  WorkerProcess writer(node, 2_process, 1_job, [](Worker& worker) { worker.put(14 * kMiB, 'c'); });
  node.run_until("the reader was asked",
                 [&] { return node.received[troupe::wire::Message::OBJECT_RETURN] == 1; });
  CHECK(node.statistics().pinned_bytes == 12 * kMiB);

  reader.tell("drop them");

  CHECK(writer.join() == 0);
  CHECK(node.statistics().spilled == 2);
  reader.tell("end");
  CHECK(reader.join() == 0);
}

TEST_CASE("a process that does not answer does not stop others", "[store][processes]") {
  TemporaryDirectory directory;
  TestNode node(options_for_test(16 * kMiB, directory.path));
  WorkerProcess silent(node, 1_process, 1_job, [](Worker& worker) {
    worker.put(6 * kMiB, 'a');
    worker.client.free(worker.put(6 * kMiB, 'b'));
    worker.tell("freed");
    worker.hear();
  });
  CHECK(silent.hear() == "freed");
  node.run_until("memory is kept", [&] { return node.statistics().kept_bytes == 6 * kMiB; });
  {
    const troupe::test::Stopped still(silent.pid());
    REQUIRE(::waitpid(silent.pid(), nullptr, WUNTRACED) == silent.pid());  // all of its threads
    WorkerProcess other(node, 2_process, 1_job, [](Worker& worker) { worker.put(10 * kMiB, 'c'); });
    CHECK(other.join() == 0);
    CHECK(node.statistics().spilled == 1);
  }
  silent.kill();
}

TEST_CASE("when the node is gone, what waits and what is asked later is refused",
          "[store][processes]") {
  auto node = std::make_unique<TestNode>(options_for_test(16 * kMiB));
  auto [ours, theirs] = socket_pair();
  auto attached = attach(*node, 1_process, 1_job, std::move(ours));
  LocalClient local(attached.arena, 1_process, std::move(theirs));
  std::atomic<int> refused = 0;
  const auto count = [&](const std::variant<ViewPtr, Refusal>& view) {
    if (const auto* refusal = std::get_if<Refusal>(&view))
      refused += refusal->kind == Refusal::Kind::Stopped;
  };
  local.client().view({.object = {1_process, 99}}, count);
  node->run_until("the request", [&] { return node->statistics().waiting == 1; });
  attached.link->close();
  node->run_until("the refusal", [&] { return refused == 1; });
  CHECK(std::get<Refusal>(local.client().view({1_process, 99})).kind == Refusal::Kind::Stopped);
}

/// Others write there too: a browser, for one.
std::vector<std::string> shared_memory_of_troupe() {
  auto names = entries_of("/dev/shm");
  std::erase_if(names, [](const std::string& name) { return name.find("troupe") == name.npos; });
  return names;
}

TEST_CASE("nothing is left in /dev/shm", "[store][processes]") {
  const auto before = shared_memory_of_troupe();
  {
    TestNode node(options_for_test(16 * kMiB));
    WorkerProcess worker(node, 1_process, 1_job,
                         [](Worker& worker) { put_and_wait(worker, kMiB, 'a'); });
    worker.hear();
    CHECK(shared_memory_of_troupe() == before);
    worker.kill();
  }
  CHECK(shared_memory_of_troupe() == before);
}

#endif
