#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/train/communicator.hpp>

#include "zero/flat.hpp"

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
///   what happens                     does
///   an operator, buffer is here      holds the buffer until the operator has ended
///   an operator, buffer is not here  a round; gives back the buffers used longest ago, but kKept
///   meet                             rounds in which this rank needs none, until no rank needs one
///   hold                             as an operator that uses all buffers, and ends with the guard
///
/// 1. A buffer that an operator or a guard holds is here.
/// 2. Of the buffers that nobody holds, at most kKept are here after a round that this rank needed,
///    and none after the ranks have met.
/// 3. Ranks meet at the end of each backward, well or not, and in all of what is a collective here.
///    So they begin alike, and make as many rounds.
/// 4. A round brings values of one step: ranks that have made other steps, or have written to other
///    parameters, get an error. What is written under a guard is not counted, so that one rank may
///    write for a while, and take it back.
///
/// Where a round fails, as where there is no memory for a buffer, the communicator is no more: the
/// run cannot go on.
///
/// Used by the thread of the context, and by that of its backward.
class Gathering {
 public:
  static constexpr std::size_t kKept = 2;  // layers mostly end and begin within a bucket

  /// `communicator`: over memory of the parameters' device; `control`: over main memory. Nobody
  /// else uses them. They may be the same, and outlive this.
  Gathering(Communicator& communicator, Communicator& control);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// All ranks add the same ones, in the same order. Their buffers are given back.
  void add(const std::vector<std::shared_ptr<Flat>>& flats);
  /// Gives the parameters memory of their own again. A collective.
  void dissolve(const std::vector<std::shared_ptr<Flat>>& flats);
  /// A collective, but without meeting. Afterwards this one is here, at least until another one is
  /// used.
  void bring(Flat& flat);
  /// A collective, after which they are here until release_held().
  void hold(const std::vector<std::shared_ptr<Flat>>& flats);
  /// Also of one that is no more.
  static void release_held(const std::vector<std::shared_ptr<Flat>>& flats) noexcept;
  /// A collective: returns once every rank has come, and gives those that have not what they need.
  /// Then the buffers that nobody holds are given back.
  void meet();

 private:
  class Unit;
  struct Request;

  Unit& unit_of(const Flat& flat);
  void use(Unit& unit);
  void bring(Unit& unit);
  void note_used(Unit& unit);
  void give_back_oldest();
  bool round(std::int64_t needed);
  void gather(Flat& flat);
  std::int64_t steps() const;

  Communicator& communicator_;
  Communicator& control_;
  std::vector<std::shared_ptr<Unit>> units_;  // nullptr: dissolved
  std::vector<Unit*> used_;                   // the last one used is the last one here
};

}  // namespace troupe::train
