#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/id_literals.hpp"
#include "../../support/rounds.hpp"
#include "store/catalog/catalog.hpp"

using namespace troupe::store;

namespace {

constexpr std::uint64_t kCap = 64 * kPageBytes;

/// Random events, sensible, late and senseless, against the catalog; work ends in any order between
/// its lanes, and at times fails. It remembers what it was told, and what nobody may ever see: two
/// owners of one range.
class Storm {
 public:
  explicit Storm(unsigned seed) : random_(seed) {
    for (ProcessId process = 1_process; process <= ProcessId(kProcesses); ++process)
      catalog_.attach(process, job_of(process));
  }

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      one_event();
      catalog_.check();
    }
  }

  /// Everything ends: nothing may be left.
  void drain() {
    for (int i = 0; i < 10'000 && work_left(); ++i) do_work(false);
    REQUIRE_FALSE(work_left());
    for (ProcessId process = 1_process; process <= next_process_; ++process) {
      forget(process);
      apply(catalog_.process_ended(process));
    }
    for (ProcessId owner = kElsewhere; owner < ProcessId(kFirstElsewhere + 4); ++owner)
      apply(catalog_.owner_ended(owner));
    for (int i = 0; i < 10'000 && (work_left() || !copies_.empty() || !node_pins_.empty()); ++i) {
      do_work(false);
      end_copy(false);
      release();
    }
    catalog_.check();
    const auto left = catalog_.statistics();
    CHECK(left.objects == 0);
    CHECK(left.object_bytes == 0);
    CHECK(left.kept_bytes == 0);
    CHECK(left.waiting == 0);
    CHECK(left.disk_bytes == 0);
    CHECK(files_.empty());
    CHECK(unanswered_.empty());
    apply(catalog_.job_ended(1_job));
    apply(catalog_.job_ended(2_job));
    CHECK(catalog_.statistics().warm_bytes == 0);
  }

 private:
  static constexpr std::uint64_t kProcesses = 5;
  static constexpr std::uint64_t kFirstElsewhere = 1000;
  static constexpr ProcessId kElsewhere{kFirstElsewhere};

  static CatalogOptions options() {
    return {.cap_bytes = kCap,
            .keep_bytes = 8 * kPageBytes,
            .space_factor = 4,
            .most_waiting = 20,
            .most_objects = 60};
  }
  using RequestKey = std::pair<ProcessId, RequestId>;
  static JobId job_of(ProcessId process) { return JobId(1 + process.value() % 2); }

  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
  }
  ProcessId any_process() { return ProcessId(1 + pick(next_process_.value())); }
  ObjectId any_object() {
    if (objects_.empty() || pick(30) == 0) return {any_process(), pick(1000)};
    return objects_[pick(objects_.size())];
  }

  void one_event() {
    switch (pick(18)) {
      case 0:
      case 1:
      case 2:
        return create();
      case 3:
      case 4:
        return seal();
      case 5:
      case 6:
        return get();
      case 7:
        return unpin();
      case 8:
        return free();
      case 9:
        return apply(catalog_.expired(any_process(), RequestId(pick(last_request_.value() + 1))));
      case 10:
        return end_somebody();
      case 11:
        return answer_recall();
      case 12:
        return pick(2) == 0 ? apply(catalog_.recall_over()) : apply(catalog_.memory_may_grow());
      case 13:
        return copy();
      case 14:
        return pick(3) == 0 ? hold() : pick(2) == 0 ? release() : end_copy(true);
      default:
        return do_work(true);
    }
  }

  void create() {
    const auto by = any_process();
    const ObjectId object = pick(20) == 0 ? any_object() : ObjectId{by, ++last_number_};
    const ProcessId owner = pick(5) == 0 ? kElsewhere : any_process();
    const auto bytes = pick(40) == 0 ? kCap + 1 : pick(24 * kPageBytes);
    auto& kept = kept_[by];
    if (!kept.empty() && pick(2) == 0) {
      const auto extent = *kept.begin();
      const auto made =
          catalog_.create_in_kept(by, object, owner, pick(extent.bytes + 1), extent.offset);
      if (std::holds_alternative<Refusal>(made)) return;
      kept.erase(kept.begin());
      apply(std::get<Effects>(made));
    } else {
      unanswered_.insert({by, ++last_request_});
      apply(catalog_.create(by, last_request_, object, owner, bytes));
    }
    objects_.push_back(object);
  }
  void seal() {
    const auto object = any_object();
    apply(catalog_.seal(pick(10) == 0 ? any_process() : object.process, object, pick(2) == 0));
  }
  void get() {
    const auto by = any_process();
    unanswered_.insert({by, ++last_request_});
    apply(catalog_.get(by, last_request_, any_object()));
  }
  void unpin() {
    apply(catalog_.unpin(any_process(), any_object(), static_cast<std::uint32_t>(1 + pick(3))));
  }
  void free() {
    const auto object = pick(20) == 0 ? ObjectId{any_process(), last_number_ + 1} : any_object();
    const ProcessId by = pick(3) == 0 ? ProcessId() : pick(3) == 0 ? any_process() : object.process;
    apply(catalog_.free(by, object, pick(2) == 0));
  }
  /// A process asks for an object of another node.
  void copy() {
    const auto by = any_process();
    const ObjectId object{kElsewhere, 1 + pick(30)};
    const RequestKey asked{by, ++last_request_};
    unanswered_.insert(asked);
    apply(catalog_.get(by, asked.second, object, !catalog_.knows(object)));
    if (!unanswered_.contains(asked) || catalog_.knows(object)) return;
    const auto node = Catalog::node_of(job_of(by));
    unanswered_.insert({node, ++last_request_});
    const ProcessId owner = pick(3) == 0 ? any_process() : ProcessId(kFirstElsewhere + 1 + pick(3));
    apply(catalog_.create(node, last_request_, object, owner, pick(24 * kPageBytes)));
    objects_.push_back(object);
  }
  void end_copy(bool may_fail) {
    if (copies_.empty()) return;
    const auto copy = copies_[pick(copies_.size())];
    const auto object = copy.second;
    if (pick(3) == 0) {
      catalog_.pin_copy(object);
      node_pins_.push_back(copy);
    }
    std::erase(copies_, copy);
    std::optional<Refusal> failure;
    if (may_fail && pick(3) == 0) failure = {Refusal::Kind::Damaged, "as the test wants"};
    apply(catalog_.copied(object, failure));
  }
  /// The node sends an object, and has sent one.
  void hold() {
    const auto node = Catalog::node_of(JobId(1 + pick(2)));
    unanswered_.insert({node, ++last_request_});
    apply(catalog_.get(node, last_request_, any_object()));
  }
  void release() {
    if (node_pins_.empty()) return;
    const auto pinned = node_pins_.begin() + static_cast<std::ptrdiff_t>(pick(node_pins_.size()));
    const auto [node, object] = *pinned;
    node_pins_.erase(pinned);
    apply(catalog_.unpin(node, object, 1));
  }
  void end_somebody() {
    if (pick(6) != 0) return;
    const auto process = any_process();
    apply(pick(4) == 0 ? catalog_.owner_ended(process) : end(process));
  }
  Effects end(ProcessId process) {
    forget(process);
    auto out = catalog_.process_ended(process);
    if (next_process_ < 40_process) {
      ++next_process_;
      catalog_.attach(next_process_, job_of(next_process_));
    }
    return out;
  }
  /// It hears nothing any more.
  void forget(ProcessId process) {
    kept_.erase(process);
    std::erase_if(unanswered_, [&](const auto& request) { return request.first == process; });
  }
  void answer_recall() {
    if (recalls_.empty()) return;
    const auto recall = recalls_[pick(recalls_.size())];
    std::erase_if(recalls_, [&](const auto& one) {
      return one.from == recall.from && one.round == recall.round;
    });
    std::vector<std::uint64_t> offsets;
    for (const auto& extent : kept_[recall.from]) offsets.push_back(extent.offset);
    kept_[recall.from].clear();
    apply(catalog_.returned(recall.from, recall.round, offsets));
  }

  bool work_left() const { return !memory_.empty() || !disk_.empty(); }
  void do_work(bool may_fail) {
    std::optional<Refusal> failure;
    if (may_fail && pick(5) == 0) failure = {Refusal::Kind::DiskFull, "as the test wants"};
    if (!memory_.empty() && (disk_.empty() || pick(2) == 0)) {
      const auto commit = memory_.front();
      memory_.pop_front();
      return apply(catalog_.committed(commit.object, failure));
    }
    if (disk_.empty()) return;
    const auto [object, writes] = disk_.front();
    disk_.pop_front();
    if (!writes) return apply(catalog_.restored(object, failure));
    if (!failure) files_.insert(object);
    apply(catalog_.written(object, failure));
  }

  void answered(ProcessId to, RequestId request) { REQUIRE(unanswered_.erase({to, request}) == 1); }
  void apply(const Effects& effects) {
    for (const auto& effect : effects) apply(effect);
  }
  void apply(const Effect& effect) {
    if (const auto* created = std::get_if<Created>(&effect)) {
      answered(created->to, created->request);
      if (Catalog::is_node(created->to)) copies_.emplace_back(created->to, created->object);
    }
    if (const auto* got = std::get_if<Got>(&effect)) {
      answered(got->to, got->request);
      if (Catalog::is_node(got->to)) node_pins_.emplace_back(got->to, got->object);
    }
    if (const auto* declined = std::get_if<Declined>(&effect)) {
      answered(declined->to, declined->request);
      CHECK_FALSE(declined->refusal.message.empty());
    }
    if (const auto* kept = std::get_if<Kept>(&effect)) kept_[kept->to].insert(kept->extent);
    if (const auto* recall = std::get_if<Recall>(&effect); recall && recall->round != 0)
      recalls_.push_back(*recall);
    if (const auto* commit = std::get_if<Commit>(&effect)) memory_.push_back(*commit);
    if (const auto* write = std::get_if<WriteOut>(&effect)) disk_.push_back({write->object, true});
    if (const auto* read = std::get_if<ReadBack>(&effect)) {
      REQUIRE(files_.contains(read->object));
      disk_.push_back({read->object, false});
    }
    if (const auto* erase = std::get_if<Erase>(&effect)) REQUIRE(files_.erase(erase->object) == 1);
  }

  std::mt19937 random_;
  Catalog catalog_{options()};
  std::uint64_t last_number_ = 0;
  RequestId last_request_;
  ProcessId next_process_{kProcesses};
  std::vector<ObjectId> objects_;
  std::map<ProcessId, std::set<Extent>> kept_;
  std::set<std::pair<ProcessId, RequestId>> unanswered_;
  std::vector<Recall> recalls_;
  std::vector<std::pair<ProcessId, ObjectId>> copies_;     // that the node writes
  std::vector<std::pair<ProcessId, ObjectId>> node_pins_;  // of what it sends
  std::deque<Commit> memory_;
  std::deque<std::pair<ObjectId, bool>> disk_;
  std::set<ObjectId> files_;
};

}  // namespace

TEST_CASE("no byte, pin, file or answer is lost, whatever happens", "[store][catalog][property]") {
  const auto seed = GENERATE(take(troupe::test::rounds(60), random(0u, 1u << 30)));
  CAPTURE(seed);
  Storm storm(seed);
  storm.run(1500);
  storm.drain();
}
