// Memory that is there while it is used, and the buffer of parameters that lies in it.
#include "zero/gathering/lent_memory.hpp"

#include <memory>
#include <stdexcept>

#include <torch/utils.h>

#include "support/catch.hpp"
#include "support/forked_gang.hpp"
#include "zero/flat.hpp"

#include "refusing_communicator.hpp"

using namespace troupe;
using namespace troupe::train;
using namespace troupe::testing;

namespace {

/// An owner that brings the memory, and notes what it is told.
struct Told final : MemoryOwner {
  void before_use() override {
    if (lent != nullptr && !lent->is_there()) {
      lent->prepare();
      lent->take();
    }
    ++before;
  }
  void after_use() noexcept override { ++after; }
  LentMemory* lent = nullptr;
  int before = 0, after = 0;
};

}  // namespace

TEST_CASE("memory that is lent is told of by every operator that uses it", "[train][zero][lent]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext&) {
          const auto flat = torch::arange(6, torch::kFloat64);
          LentMemory lent(flat);
          const auto view = lent.view(2, torch::empty({2, 2}, torch::kFloat64));
          expect(view.sum().item<double>() == 2 + 3 + 4 + 5, "nobody is told without an owner");
          auto owner = std::make_shared<Told>();
          owner->lent = &lent;
          lent.set_owner(owner);
          const auto turned = view.t();
          lent.give_back();
          expect(!lent.is_there() && view.storage().nbytes() == 0, "it was given back");
          expect_in(thrown_by<std::exception>([&] { view.data_ptr<double>(); }),
                    "not allocated yet");  // there is none to be read without an operator
          const int before = owner->before;
          const auto twice = torch::stack({turned, torch::ones({2, 2}, torch::kFloat64)});
          expect(lent.is_there() && owner->before > before, "a list, and a view, tell the owner");
          expect(owner->before == owner->after, "of the end, too");
          const int then = owner->before;
          twice.sum();
          expect(owner->before == then, "what was made of it does not");
          owner.reset();
          expect(view.sum().defined(), "memory that is there is used without an owner");
          lent.give_back();
          expect_in(thrown_by<std::logic_error>([&] { view.sum(); }),
                    "Context that brings them has ended");
        })) == "");
}

TEST_CASE("a buffer whose parts do not come is not taken for values", "[train][zero][flat]") {
  CHECK(failures(ForkedGang::on_one_node(1).run([](GangContext&) {
          const auto parameter = torch::arange(300, torch::kFloat64);
          Flat flat({{"weight", parameter}}, 0, 2, Flat::Holds::Part);
          flat.release();
          RefusingCommunicator communicator;
          thrown_by<std::runtime_error>([&] { flat.gather(communicator); });
          expect(!flat.is_whole(), "it is not here");
          flat.begin_update();
          const auto own = flat.piece_tensors().front();
          expect(torch::equal(own, torch::arange(own.numel(), torch::kFloat64)),
                 "the rank has its part as it was");
        })) == "");
}
