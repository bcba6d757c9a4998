#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <troupe/train/communicator.hpp>

#include "zero/flat.hpp"
#include "zero/gathering/prefetch.hpp"
#include "zero/gathering/use_order.hpp"

namespace troupe::train {

/// Brings the values of parameters of which each rank holds a part alone (ZeRO's stage 3:
/// Rajbhandari et al., SC 2020, section 5.3), when an operator is about to use them, and gives
/// their memory back when others were used since. Of one context, in one rank's process.
///
/// Parameters come by the bucket, in rounds that all ranks take part in: each says which bucket it
/// needs, or none, and all then gather every bucket that one of them needs. So ranks may run other
/// layers than others, or the same ones in another order, and one that has ended its backward, or
/// waits for the others elsewhere, gives them what they still need until they have come there too.
///
/// A rank also says in a round which bucket it expects to need next, from what it has used before,
/// if it has memory for it. Where all ranks need the same bucket and expect the same one, that
/// comes in the background while operators compute. It is used in a round all the same, so that
/// ranks make as many rounds whatever they have expected.
///
///   what happens                     does
///   an operator, buffer is here      holds the buffer until the operator has ended
///   an operator, buffer is not here  gives back the buffers used longest ago, but kKept - 1; a
///                                    round; begins the bucket that all ranks expect next
///   meet                             rounds in which this rank needs none, until no rank needs one
///   settle                           waits for the bucket that comes, and drops it
///   hold                             as an operator that uses all buffers, and ends with the guard
///
/// 1. A buffer that an operator or a guard holds is here.
/// 2. Of the buffers that nobody holds, at most kKept are here after a round that this rank needed,
///    and none after the ranks have met. One more has memory at any time: that which another rank
///    needs, or that which comes in the background. (Where one operator uses more, they stay until
///    the next round.)
/// 3. Ranks meet at the end of each backward, well or not, and in all of what is a collective here.
///    So they begin alike, and make as many rounds.
/// 4. A round brings values of one step: ranks that have made other steps, or have written to other
///    parameters, get an error. What is written under a guard is not counted, so that one rank may
///    write for a while, and take it back.
/// 5. What comes in the background is here on no rank, so that nobody writes to it before a round
///    in which it is used or dropped, and nothing comes so when the ranks have met, or settled,
///    which they do before the parts are updated.
///
/// Where a round fails, as where there is no memory for a buffer, the communicator is no more: the
/// run cannot go on.
///
/// Used by the thread of the context, and by that of its backward.
class Gathering {
 public:
  static constexpr std::size_t kKept = 2;  // layers mostly end and begin within a bucket

  /// `communicator`: over memory of the parameters' device; `control`: over main memory. Nobody
  /// else uses them before end(), which they outlive. They may be the same. `prefetches`: whether
  /// this rank expects anything.
  Gathering(Communicator& communicator, Communicator& control, bool prefetches);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// All ranks add the same ones, in the same order. Their buffers are given back.
  void add(const std::vector<std::shared_ptr<Flat>>& flats);
  /// Gives the parameters memory of their own again. A collective.
  void dissolve(const std::vector<std::shared_ptr<Flat>>& flats);
  /// A collective, after which they are here until release_held().
  void hold(const std::vector<std::shared_ptr<Flat>>& flats);
  /// Also of one that is no more.
  static void release_held(const std::vector<std::shared_ptr<Flat>>& flats) noexcept;
  /// A collective: returns once every rank has come, and gives those that have not what they need.
  /// Then the buffers that nobody holds are given back.
  void meet();
  /// All ranks settle at the same place, after operators have used what they need. No collective.
  void settle();
  /// The communicators end: a parameter whose values are not here is an error where it is used, and
  /// so is each collective. Waits for what is on its way.
  void end() noexcept;

 private:
  class Unit;
  class Taken;
  struct Request;
  enum class LooksAhead : bool { No, Yes };

  Unit& unit_of(const Flat& flat);
  void use(Unit& unit);
  void bring(Flat& flat);
  void bring(Unit& unit, LooksAhead looks_ahead);
  void note_used(Unit& unit);
  void give_back_oldest();
  bool round(std::int64_t needed, LooksAhead looks_ahead);
  std::int64_t prepare_next(std::int64_t needed);
  void check_steps(const std::vector<Request>& requests) const;
  static std::set<std::int64_t> wanted_by(const std::vector<Request>& requests);
  void or_abort(const std::function<void()>& act);
  void serve(const Request& own, const std::vector<Request>& requests, Taken* taken);
  Flat* flat_of(std::int64_t number) const;
  void gather_for_others(Flat& flat);
  std::int64_t steps() const;

  Communicator& communicator_;
  Communicator& control_;
  const LooksAhead prefetches_;
  std::vector<std::shared_ptr<Unit>> units_;  // nullptr: dissolved
  std::vector<Unit*> used_;                   // the last one used is the last one here
  UseOrder order_;
  Prefetch prefetch_;
  bool ended_ = false;
};

}  // namespace troupe::train
