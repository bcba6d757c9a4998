#include <catch2/catch.hpp>

#include "support/hosts.hpp"

using namespace troupe::test;

TEST_CASE("ranks on two hosts meet at the address and the port that they are told",
          "[launch][network]") {
  const Scene scene;
  if (!can_make_hosts(scene)) return;
  auto head = scene.start_head({"--cpus", "1"});
  Child worker(
      scene.hosts.on_second({TROUPE_PROGRAM, "worker", "--head", scene.address(), "--cpus", "1"}),
      scene.far_environment);
  head.wait_for_output("node 2 joined");
  const std::string meet =
      "import os, socket\n"
      "where = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
      "if os.environ['RANK'] == '0':\n"
      "    server = socket.create_server(where)\n"
      "    print('met', server.accept()[1][0], flush=True)\n"
      "else:\n"
      "    for _ in range(200):\n"
      "        try:\n"
      "            socket.create_connection(where, 1).close()\n"
      "            break\n"
      "        except OSError:\n"
      "            import time; time.sleep(0.05)\n"
      "    print('node', os.environ['GROUP_RANK'], flush=True)\n";
  const auto done = run(scene.hosts.on_first({TROUPE_PROGRAM, "run", "--address", scene.address(),
                                              "-n", "2", "--", "python3", "-c", meet}),
                        scene.near_environment);
  INFO(done.output);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.output, Catch::Contains("[0] met 10.77.0."));
  CHECK_THAT(done.output, Catch::Contains("[1] node 1"));
}
