// What the doctor says of GPUs and of their software, on machines that have none.
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "doctor/examined.hpp"
#include "support/own_mounts.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// A machine whose dynamic loader finds the library of fake_nvml.cpp, with GPUs 0 and 2, and a lost
/// one.
struct GpuMachine {
  GpuMachine() { add("libnvidia-ml.so.1", TROUPE_FAKE_NVML); }
  void add(const std::string& name, const std::string& library) const {
    std::filesystem::create_symlink(library, alone.folder.path() + "/" + name);
  }
  Examined doctor(std::vector<std::string> variables = {}) const {
    variables.push_back("LD_LIBRARY_PATH=" + alone.folder.path());
    return alone.doctor_with(variables);
  }
  /// In a mount namespace, after a command of sh.
  Examined doctor_after(const std::string& mounts) const {
    auto environment = alone.environment;
    environment.push_back("LD_LIBRARY_PATH=" + alone.folder.path());
    return examine(with_own_mounts(mounts, {TROUPE_PROGRAM, "doctor", "--json"}), environment);
  }
  Alone alone;
};

Examined doctor_among(const std::string& mounts) {
  const Alone alone;
  return examine(with_own_mounts(mounts, {TROUPE_PROGRAM, "doctor", "--json"}), alone.environment);
}

}  // namespace

TEST_CASE("the doctor lists GPUs, and notes those that a variable hides", "[cli][doctor]") {
  const GpuMachine machine;
  const auto all = machine.doctor({"CUDA_VISIBLE_DEVICES=0,2"});
  CHECK(all.level("GPU 0") == "ok");
  CHECK(all.value("GPU 2") == "Test GPU, 74.5 GiB, GPU-22");
  CHECK(all.level("GPU driver") == "ok");
  CHECK(all.level("visible GPUs") == "ok");
  const auto one = machine.doctor({"CUDA_VISIBLE_DEVICES=2"});
  CHECK(one.level("visible GPUs") == "note");
  CHECK(one.value("visible GPUs") == "1 of 2: CUDA_VISIBLE_DEVICES is '2'");
  CHECK_THAT(one.remedy("visible GPUs"), Contains("unset the variable"));
}

TEST_CASE("the doctor finds a GPU that the driver counts and cannot open", "[cli][doctor]") {
  const auto examined = GpuMachine().doctor();
  CHECK(examined.exit_code == 1);
  CHECK(examined.level("GPU 1") == "problem");
  CHECK_THAT(examined.remedy("GPU 1"), Contains("Xid") && Contains("--gpu-reset -i 1"));
}

TEST_CASE("the doctor tells NCCL's version where there are GPUs, and notes that it is missing",
          "[cli][doctor]") {
  const GpuMachine machine;
  // Without its cache the dynamic loader looks in the system's own folders alone.
  const bool has_cache = std::filesystem::exists("/etc/ld.so.cache");
  const auto missing = has_cache && can_mount()
                           ? machine.doctor_after("mount --bind /dev/null /etc/ld.so.cache")
                           : machine.doctor();
  if (missing.level("NCCL") == "ok") {
    WARN("skipped: this machine has NCCL where the dynamic loader looks");
  } else {
    CHECK(missing.level("NCCL") == "note");
    CHECK_THAT(missing.remedy("NCCL"), Contains("LD_LIBRARY_PATH"));
  }
  machine.add("libnccl.so.2", TROUPE_FAKE_NCCL);
  CHECK(machine.doctor().value("NCCL") == "libnccl.so.2 2.21.5");
}

TEST_CASE("the doctor notes a GPU without a driver, and finds a driver without its library",
          "[cli][doctor]") {
  if (!can_mount()) return;
  const std::string no_device = "mount -t tmpfs none /dev";
  const auto no_driver = doctor_among(
      no_device +
      "; mount -t tmpfs none /sys/bus; gpu=/sys/bus/pci/devices/0000:01:00.0; mkdir -p $gpu; "
      "echo 0x10de > $gpu/vendor; echo 0x030200 > $gpu/class");
  CHECK(no_driver.level("GPUs") == "note");
  CHECK(no_driver.value("GPUs") == "1 of NVIDIA on the PCI bus, without a driver");
  CHECK_THAT(no_driver.remedy("GPUs"), Contains("install NVIDIA's driver"));
  const auto no_library = doctor_among(no_device + "; touch /dev/nvidiactl");
  CHECK(no_library.exit_code == 1);
  CHECK(no_library.level("GPUs") == "problem");
  CHECK_THAT(no_library.remedy("GPUs"), Contains("nvidia-smi"));
}

TEST_CASE("a /dev/shm that is full is a problem where there are GPUs", "[cli][doctor]") {
  if (!can_mount()) return;
  const GpuMachine machine;
  const auto examined = machine.doctor_after(
      "mount -t tmpfs -o size=1m none /dev/shm; head -c 1m /dev/zero > /dev/shm/filler");
  CHECK(examined.level("/dev/shm") == "problem");
}
