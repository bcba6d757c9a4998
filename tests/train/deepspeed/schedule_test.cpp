// The schedules of learning rates against the numbers that DeepSpeed's own classes gave.
#include <troupe/train/schedule.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/train/deepspeed.hpp>

#include "deepspeed/schedule_vectors.hpp"
#include "support/catch.hpp"

using namespace troupe::train;
using Catch::Contains;
using nlohmann::json;

namespace {

Schedule schedule_of(const json& block) {
  return deepspeed::parse(json{{"scheduler", block}}.dump()).scheduler.value();
}

}  // namespace

TEST_CASE("each schedule has the rates and betas of DeepSpeed's, step by step",
          "[train][deepspeed]") {
  const auto vectors = json::parse(troupe::testing::kScheduleVectors);
  REQUIRE(vectors.size() == 18);
  for (const auto& vector : vectors) {
    INFO(vector.at("scheduler").dump());
    const auto schedule = schedule_of(vector.at("scheduler"));
    const auto rates = vector.at("lr").get<std::vector<double>>();
    REQUIRE(rates.size() == 22);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      INFO("step " << step);
      const auto found =
          step_after(schedule, static_cast<std::int64_t>(step), vector.at("rate").get<double>());
      CHECK_THAT(found.lr,
                 Catch::WithinULP(rates[step], 4) || Catch::WithinAbs(rates[step], 1e-18));
      const auto betas = found.betas.value_or(std::array{0.5, 0.25});
      CHECK_THAT(betas[0], Catch::WithinULP(vector.at("beta1").at(step).get<double>(), 4));
      CHECK(betas[1] == vector.at("beta2").at(step).get<double>());
    }
  }
}

TEST_CASE("a schedule without an end stays finite", "[train][deepspeed]") {
  for (const auto& vector : json::parse(troupe::testing::kScheduleVectors)) {
    INFO(vector.at("scheduler").dump());
    const auto schedule = schedule_of(vector.at("scheduler"));
    CHECK(std::isfinite(step_after(schedule, 1'000'000'000, 0.1).lr));
  }
}

TEST_CASE("a schedule that cannot be is refused with its field", "[train][deepspeed]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const Schedule& schedule) {
    try {
      check_schedule(schedule);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused(WarmupLR{}) == "accepted");
  CHECK(refused(WarmupLR{.warmup_num_steps = 0}) == "warmup_num_steps is 0: expected 1 or more");
  CHECK(refused(WarmupLR{.warmup_max_lr = -1}) == "warmup_max_lr is -1: expected 0 or more");
  CHECK(refused(WarmupLR{.warmup_min_lr = nan}) == "warmup_min_lr is nan: expected 0 or more");
  CHECK(refused(WarmupDecayLR{}) == "total_num_steps is 0: expected 1 or more");
  CHECK(refused(WarmupCosineLR{}) == "total_num_steps is 0: expected 1 or more");
  CHECK(refused(OneCycle{.cycle_first_step_size = 0}) ==
        "cycle_first_step_size is 0: expected 1 or more");
  CHECK(refused(OneCycle{.cycle_second_stair_count = -1}) ==
        "cycle_second_stair_count is -1: expected 0 or more");
  CHECK(refused(OneCycle{.cycle_max_mom = 1}) ==
        "cycle_max_mom is 1: expected 0 or more, and less than 1");
  CHECK(refused(LRRangeTest{.lr_range_test_step_size = -3}) ==
        "lr_range_test_step_size is -3: expected 1 or more");
}
