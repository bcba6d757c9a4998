#include <troupe/train/context.hpp>

#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <troupe/errors.hpp>

#include "checkpoint/directory.hpp"
#include "checkpoint/kept_checkpoints.hpp"
#include "checkpoint/restoring/restoring.hpp"
#include "checkpoint/saving/saver_on_demand.hpp"
#include "config/name.hpp"
#include "context_options.hpp"
#include "log/log.hpp"
#include "parallel/device.hpp"
#include "parallel/torch_error.hpp"
#include "plan/full_memory.hpp"
#include "precision/loss_scaler.hpp"
#include "precision/master_weights.hpp"
#include "prepared/checkpoint_share.hpp"
#include "prepared/communicators_on_demand.hpp"
#include "prepared/context_rank.hpp"
#include "prepared/joined_step.hpp"
#include "prepared/learning_rates.hpp"
#include "prepared/models.hpp"
#include "prepared/optimizers.hpp"
#include "progress/step_teller.hpp"
#include "zero/preparing.hpp"

namespace troupe::train {
namespace {

constexpr auto* kEnded =
    "has ended its context, as where its function has returned: all ranks call prepare(), "
    "backward() and checkpoint() equally often";

/// 0: as it was. A worker process has been given its threads as it started.
int threads_of(const ContextOptions& options) {
  if (options.threads >= 0) return options.threads;
  return this_gang() != nullptr ? 0 : 1;
}

template <class Exception>
[[noreturn]] void throw_named(const char* name, const Exception& thrown) {
  auto failure = thrown.failure();
  failure.message = fmt::format("{}: {}", name, failure.message);
  throw Exception(std::move(failure));
}

/// Runs a collective that the program calls by this name, with which the error begins where another
/// rank does not come.
template <class Call>
auto named(const char* name, Call call) {
  try {
    return call();
  } catch (const GangBroken& broken) {
    throw_named(name, broken);
  } catch (const TimedOut& late) {
    throw_named(name, late);
  }
}

}  // namespace

/// What a context is made of. Each part has references to parts before it, and so ends before them.
///
/// The destructor calls leave() before any part ends, also where begin() throws: the other ranks
/// must not wait for this one.
struct Context::Impl {
  Impl(Member& member, ContextOptions options) : here{member, std::move(options)} {}
  ~Impl() {
    if (teller) teller->detach();
    leave();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Makes the parts. A collective where the run continues from a checkpoint.
  void begin();
  void restore(LossScaler* scaler);
  /// Logs once where train::run continues, for who started it: a sweep says itself what it does.
  void log_start(int epochs);
  /// Runs what prepares something. Where that throws, tell_failure() is called.
  template <class Prepare>
  auto or_tell(Prepare prepare);
  /// As the function of this name.
  void tell_failure(const std::exception& failed) noexcept;
  /// Gives other ranks the parameters that they still need, or aborts their calls where an
  /// exception leaves the context; waits for the save in flight; and declines what was never made.
  void leave();
  /// Ends the calls of other ranks in the communicators that were made.
  void abort(const std::string& reason) const;
  /// Tells ranks that make the other communicators, now or later, that this rank does not.
  void decline(const std::string& why) const;
  /// `text`, and with what this rank was refused last, if so.
  std::string with_refusal(std::string_view text) const;

  ContextRank here;
  const int exceptions = std::uncaught_exceptions();  // in flight when the context was made
  int epoch = -1;
  bool stopped = false;
  bool has_said_batch = false;
  bool has_logged_start = false;
  bool is_in_join = false;
  std::string refusal;            // of what was prepared last; empty: it was not refused
  std::int32_t joined_loops = 0;  // that were begun
  CommunicatorsOnDemand communicators{here, "context"};
  CommunicatorsOnDemand for_parameters{here, "context parameters"};
  CommunicatorsOnDemand for_statistics{here, "context statistics"};
  // Those that are pointers are there from begin() on.
  std::unique_ptr<Restoring> restoring;  // nullptr: the run does not continue from a checkpoint
  std::unique_ptr<PreparedModels> models;
  std::unique_ptr<PreparedOptimizers> optimizers;
  SaverOnDemand saver{here.member.gang(), here.member.storage(), here.options.timeout};
  std::unique_ptr<KeptCheckpoints> kept;
  std::shared_ptr<detail::StepTeller> teller;  // nullptr: nobody wants to know how far this rank is
};

void Context::Impl::begin() {
  check(here.options.zero);
  if (here.member.shows_progress()) teller = std::make_shared<detail::StepTeller>(here.member);
  kept = std::make_unique<KeptCheckpoints>(here.options.checkpoints);
  const auto& precision = here.options.mixed_precision;
  std::shared_ptr<LossScaler> scaler;
  if (precision.type == MixedPrecision::Type::Float16)
    scaler = std::make_shared<LossScaler>(precision.loss_scale);
  std::unique_ptr<InitialMasters> masters;
  if (precision.master_weights) masters = std::make_unique<InitialMasters>(precision.type);
  here.device = device_of_rank(here.member.gang().local_rank());
  if (const int threads = threads_of(here.options); threads > 0) at::set_num_threads(threads);
  if (!here.member.restore_from().empty()) restore(scaler.get());
  models = std::make_unique<PreparedModels>(here, communicators, for_parameters, for_statistics,
                                            restoring.get(), std::move(masters));
  optimizers = std::make_unique<PreparedOptimizers>(here, communicators, *models, restoring.get(),
                                                    std::move(scaler));
}

/// A collective.
void Context::Impl::restore(LossScaler* scaler) {
  const auto& from = here.member.restore_from();
  auto files = here.rank() == 0 ? std::make_unique<SavedFiles>(from) : nullptr;
  auto& comm = communicators.device();
  restoring = std::make_unique<Restoring>(from, std::move(files), comm, communicators.control());
  epoch = restoring->manifest().epoch;
  const auto& scale = restoring->manifest().loss_scale;
  if (scaler != nullptr && scale) scaler->restore(*scale);
}

void Context::Impl::log_start(int epochs) {
  if (!restoring || here.rank() != 0 || !are_of_run(here.member.settings())) return;
  if (std::exchange(has_logged_start, true)) return;
  const auto from = config::printable(here.member.restore_from().string());
  if (epoch + 1 >= epochs)
    log::info(fmt::format("{} has all {} epochs: no epoch is left", from, epochs));
  else
    log::info(fmt::format("continues from {}, at epoch {} of {}", from, epoch + 2, epochs));
}

template <class Prepare>
auto Context::Impl::or_tell(Prepare prepare) {
  refusal.clear();
  try {
    return prepare();
  } catch (const std::exception& failed) {
    tell_failure(failed);
    throw;
  }
}

void Context::Impl::tell_failure(const std::exception& failed) noexcept {
  if (here.world_size() == 1) return;
  try {
    const auto text = text_of(failed);
    if (dynamic_cast<const std::logic_error*>(&failed) != nullptr) {
      refusal = text;
      return;
    }
    abort(text);
    decline(fmt::format("has failed before it made the communicator: {}", text));
  } catch (const std::exception&) {
    // The gang has broken, of which the others hear.
  }
}

void Context::Impl::leave() {
  const bool thrown = std::uncaught_exceptions() > exceptions;
  try {
    if (models && !thrown) models->meet();  // others may still need parameters
  } catch (const std::exception&) {
    // Others have ended otherwise, which is told of where it matters.
  }
  if (thrown) {
    abort(with_refusal("its function was left by an exception"));
    saver.abort("its function was left by an exception");
  }
  try {
    saver.finish();
  } catch (const std::exception& error) {
    if (!thrown) log::warn(fmt::format("the last checkpoint was not written: {}", error.what()));
  }
  if (here.world_size() == 1) return;
  const auto why = thrown ? with_refusal("has left by an exception before it made the communicator")
                          : std::string(kEnded);
  decline(why);
  saver.decline(why);
}

void Context::Impl::abort(const std::string& reason) const {
  for (const auto* each : {&communicators, &for_parameters, &for_statistics}) each->abort(reason);
}

void Context::Impl::decline(const std::string& why) const {
  communicators.decline(why);
  if (here.options.zero.stage == 3) for_parameters.decline(why);
  for_statistics.decline(why);
}

std::string Context::Impl::with_refusal(std::string_view text) const {
  if (refusal.empty()) return std::string(text);
  return fmt::format("{}; before that, what it prepared last was refused: {}", text, refusal);
}

Context::Context(Member& member) : Context(member, options_from(member.settings())) {}

Context::Context(Member& member, ContextOptions options)
    : impl_(new Impl(member, std::move(options))) {
  impl_->begin();
}

Context::~Context() = default;

const ContextOptions& Context::options() const { return impl_->here.options; }
int Context::rank() const { return impl_->here.rank(); }
int Context::local_rank() const { return impl_->here.member.gang().local_rank(); }
int Context::world_size() const { return impl_->here.world_size(); }
std::uint64_t Context::seed() const { return impl_->here.member.seed(); }
c10::Device Context::device() const { return impl_->here.device; }
Communicator& Context::communicator() { return impl_->communicators.device(); }

void Context::prepare_module(std::shared_ptr<torch::nn::Module> module) {
  named("ctx.prepare()",
        [&] { impl_->or_tell([&] { impl_->models->prepare(std::move(module)); }); });
}

detail::Preparation Context::prepare_optimizer(torch::optim::Optimizer& optimizer) {
  return named("ctx.prepare()", [&] {
    return impl_->or_tell([&] { return impl_->optimizers->prepare(optimizer); });
  });
}

double Context::learning_rate_scale() const {
  return scale_of(impl_->here.options.scale_learning_rates, world_size());
}

at::Tensor Context::scaled(const at::Tensor& loss) { return impl_->optimizers->scaled(loss); }

double Context::loss_scale() const {
  const auto* scaler = impl_->optimizers->scaler();
  return scaler != nullptr ? scaler->scale() : 1;
}

std::int64_t Context::skipped_steps() const {
  const auto* scaler = impl_->optimizers->scaler();
  return scaler != nullptr ? scaler->skipped() : 0;
}

double Context::clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm) {
  return impl_->optimizers->clip_grad_norm(optimizer, max_norm);
}

Context::Gathered Context::gather(const torch::nn::Module& module) {
  return Gathered(impl_->models->hold(module));
}

Context::NoSync::NoSync(Context& context) : context_(context) {
  context_.impl_->models->count_unsynchronized(1);
}
Context::NoSync::~NoSync() { context_.impl_->models->count_unsynchronized(-1); }

Context::Epochs Context::epochs(int count) {
  impl_->log_start(count);
  return {*this, impl_->epoch + 1, count};
}

bool Context::begin_epoch(int epoch, int count) {
  if (impl_->stopped) return false;
  if (epoch >= count) {
    if (impl_->teller) impl_->teller->on_epochs_ended(count);
    return false;
  }
  impl_->epoch = epoch;
  if (impl_->teller) impl_->teller->on_epoch(epoch, count);
  return true;
}

void Context::progress(std::int64_t done, std::int64_t total, std::string_view unit) {
  if (done < 0 || total < 0)
    throw std::invalid_argument(fmt::format("progress of {} steps of {}", done, total));
  if (impl_->teller) impl_->teller->on_steps(done, total, unit);
}

DistributedSampler Context::sampler(std::size_t rows, SamplerOptions options) const {
  options.seed += seed();
  return DistributedSampler(rows, rank(), world_size(), options);
}

Loader Context::loader(const Dataset& data, std::int64_t batch, int epoch,
                       SamplerOptions options) const {
  auto rows = sampler(static_cast<std::size_t>(data.data.size(0)), options);
  rows.set_epoch(static_cast<std::uint64_t>(epoch));
  Loader loader(data, rows.indices(), batch, device());
  if (!std::exchange(impl_->has_said_batch, true))
    impl_->here.member.effective_batch(batch * world_size());
  loader.epoch_ = epoch;
  loader.teller_ = impl_->teller;
  return loader;
}

bool Context::repeats_batch() const { return !impl_->models->share().counts; }

detail::JoinedSteps::JoinedSteps(Context& context) : context_(context) {
  if (std::exchange(context_.impl_->is_in_join, true))
    throw std::logic_error(
        "a loop of ctx.join() inside of another one: end the first one before the second begins");
  loop_ = context_.impl_->joined_loops++;
}

detail::JoinedSteps::~JoinedSteps() {
  context_.impl_->is_in_join = false;
  context_.impl_->models->set_share({});
}

bool detail::JoinedSteps::begin(bool has_batch, bool can_repeat) {
  auto& impl = *context_.impl_;
  if (impl.here.world_size() == 1) return has_batch;
  impl.models->meet();
  const auto brings = has_batch ? Brings::Batch : can_repeat ? Brings::Repeat : Brings::Nothing;
  const auto share = begin_joined_step(impl.communicators.control(),
                                       {.loop = loop_, .step = steps_++, .brings = brings});
  impl.models->set_share(share.value_or(BatchShare{}));
  return share.has_value();
}

void Context::effective_batch(std::int64_t rows) {
  if (rows < 1) throw std::invalid_argument(fmt::format("an effective batch of {} rows", rows));
  impl_->has_said_batch = true;
  impl_->here.member.effective_batch(rows);
}

Verdict Context::report(const Metrics& metrics, const Checkpoint& checkpoint) {
  if (!checkpoint.directory.empty()) impl_->kept->check(metrics);
  impl_->models->meet();
  const auto verdict = impl_->here.member.report(metrics, checkpoint.directory);
  impl_->stopped = impl_->stopped || verdict == Verdict::Stop;
  if (checkpoint.directory.empty()) return verdict;
  for (const auto& old : impl_->kept->add(checkpoint.directory, metrics)) remove_checkpoint(old);
  return verdict;
}

CheckpointSave Context::save(const std::vector<std::shared_ptr<torch::nn::Module>>& models,
                             const std::vector<const torch::optim::Optimizer*>& optimizers,
                             bool copies) {
  const CheckpointContents contents{
      .models = models,
      .optimizers = optimizers,
      .parts = impl_->optimizers->parts_of(optimizers),
  };
  if (!impl_->saver.has_storage()) return CheckpointSave(nullptr);
  return named(copies ? "ctx.begin_checkpoint()" : "ctx.checkpoint()", [&] {
    impl_->models->meet();
    auto share = share_of_rank(impl_->here, *impl_->models, *impl_->optimizers, contents,
                               impl_->epoch, copies);
    return CheckpointSave(impl_->saver.get().begin(std::move(share)));
  });
}

void tell_failure(Context& context, const std::exception& failed) noexcept {
  context.impl_->tell_failure(failed);
}

void add_advice(Context& context) noexcept {
  advise_where_memory_is_full(context.impl_->models->size(), context.world_size(),
                              context.options(), context.device());
}

}  // namespace troupe::train
