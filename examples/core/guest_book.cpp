// An actor that two programs share: it is detached, so it lives longer than the program that made
// it, and is found by its name.
//
//   guest_book [--stay] [--address HOST:PORT]
//
// It prints:
//
//   1 guest has signed
//
// With `--stay` it leaves the actor behind: the next program on that cluster finds it, prints
// "2 guests have signed", and closes it.
#include <iostream>
#include <string_view>

#include <troupe/troupe.hpp>

namespace {

class GuestBook {
 public:
  int sign() { return ++guests_; }

 private:
  int guests_ = 0;
};

// [open]
/// A name with a namespace before it is the whole cluster's; a plain one is its program's own.
constexpr auto kName = "examples/guest book";

troupe::Actor<GuestBook> open_book() {
  return troupe::with({.name = kName, .detached = true}).find_or_spawn<GuestBook>();
}
// [/open]

}  // namespace

int main(int argc, char** argv) {
  const auto cluster = troupe::init(argc, argv);
  const bool stays = argc > 1 && std::string_view(argv[1]) == "--stay";

  const auto book = open_book();
  const int guests = book.call<&GuestBook::sign>().get();
  std::cout << guests << (guests == 1 ? " guest has signed\n" : " guests have signed\n");

  if (!stays) book.kill();  // Nobody else does: no program owns it.
}
