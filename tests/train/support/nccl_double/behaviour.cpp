#include "support/nccl_double/behaviour.hpp"

#include <mutex>
#include <set>

namespace nccl_double {
namespace {

std::mutex guard;  // of what follows
Behaviour now;
int begun = 0;   // operations since behave()
int waited = 0;  // calls of CUDA since behave() in which the CPU waits
std::set<std::string> texts;

}  // namespace

void behave(const Behaviour& how) {
  const std::lock_guard lock(guard);
  now = how;
  begun = 0;
  waited = 0;
}

Behaviour behaviour() {
  const std::lock_guard lock(guard);
  return now;
}

Fault take_fault() {
  const std::lock_guard lock(guard);
  return begun++ == now.fault.after ? now.fault : Fault{};
}

int operations() {
  const std::lock_guard lock(guard);
  return begun;
}

void note_wait() {
  const std::lock_guard lock(guard);
  ++waited;
}

int waits() {
  const std::lock_guard lock(guard);
  return waited;
}

const char* kept(const std::string& text) {
  const std::lock_guard lock(guard);
  return texts.insert(text).first->c_str();
}

}  // namespace nccl_double
