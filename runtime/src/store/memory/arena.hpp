#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "os/unique_fd.hpp"
#include "store/types.hpp"

namespace troupe::store {

/// The memory that the processes of one job share on one node: a memfd, which has no name, needs no
/// room in /dev/shm and is gone with the last process that has it. Its size is that of the address
/// space, and sealed; only the pages that were committed exist. Lives in the node. Every call may
/// block for milliseconds, so they are made on the memory lane of Service; it may be destroyed
/// anywhere.
class Arena {
 public:
  /// `space_bytes`: whole pages.
  static std::variant<Arena, Refusal> make(std::uint64_t space_bytes);

  int fd() const { return memory_.get(); }
  /// All of it in the address space of this process, so that a page that was touched once costs no
  /// fault again. Empty where there is no room for that: a machine with terabytes and dozens of
  /// jobs.
  std::span<std::byte> mapped() const {
    return {mapped_.get(), mapped_ ? mapped_.get_deleter().bytes : 0};
  }

  /// Puts pages into the extent, or none at all. It stops before memory runs out, since the kernel
  /// would then end processes, this one among them: memory_room() has to show `spare_bytes` more
  /// than what is taken.
  std::optional<Refusal> commit(Extent extent, std::uint64_t spare_bytes);
  /// Takes the pages away, also from those who have them mapped. A refusal: this machine does not
  /// do that, and they stay until the arena ends; to commit them again takes nothing.
  std::optional<Refusal> punch(Extent extent);
  std::uint64_t committed_bytes() const;  ///< what the kernel counts; for tests

 private:
  struct Unmap {
    std::uint64_t bytes = 0;
    void operator()(std::byte* at) const;
  };
  Arena(os::UniqueFd memory, std::uint64_t space_bytes);

  os::UniqueFd memory_;
  std::unique_ptr<std::byte, Unmap> mapped_;
};

/// An arena in the address space of a process: once to be read and once to be written, so that a
/// write through a view is a SIGSEGV of who does it, and not another value for others. Any thread;
/// immutable. A fork does not inherit the mappings and a core dump leaves them out. This guards
/// against mistakes: a process can map what it has the descriptor of as it likes, so what is
/// isolated are jobs, not processes of one job.
class Mapping {
 public:
  /// Asserts nothing about the descriptor: what is no memory of an arena is refused.
  static std::variant<Mapping, Refusal> map(int arena);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  bool covers(Extent extent) const;
  std::span<const std::byte> readable(Extent extent) const;
  std::span<std::byte> writable(Extent extent) const;
  /// The same bytes.
  std::span<const std::byte> as_readable(std::span<const std::byte> writable) const;
  /// Takes the page faults of a write at once, which costs a third less than one by one.
  /// `writable`: from the start of a page.
  void prepare_to_write(std::span<std::byte> writable) const;

 private:
  Mapping(std::byte* read, std::byte* write, std::uint64_t bytes)
      : read_(read), write_(write), bytes_(bytes) {}
  std::byte* read_;
  std::byte* write_;
  std::uint64_t bytes_;
};

/// A part of an arena in the address space of the node, while it reads, writes, sends or receives
/// an object: of Arena::mapped(), which has to outlive it, or mapped for this where there is none.
class Window {
 public:
  static std::variant<Window, Refusal> open(const Arena& arena, Extent extent);
  Window(Window&& other) noexcept;
  Window& operator=(Window&&) = delete;
  ~Window();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  Window(std::span<std::byte> bytes, bool own) : bytes_(bytes), own_(own) {}
  std::span<std::byte> bytes_;
  bool own_;
};

/// Takes the page faults of any memory at once; only advice, to memory that is not mapped as well.
void prepare_to_write(std::span<std::byte> memory);

}  // namespace troupe::store
