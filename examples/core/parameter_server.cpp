// A parameter server: an actor keeps the parameters of a model, and workers read them, compute a
// gradient and send it back. Parameters and gradients are arrays in the object store: they are
// written where they lie, and all processes of a machine read the same bytes, without a copy.
//
//   parameter_server [--address HOST:PORT]
//
// The model is a signal of 65,536 values, which a worker sees with noise of deviation 0.1.
//
// It prints:
//
//   4 workers sent 200 gradients of 256 KiB
//   the parameters differ from the signal by less than 0.05: yes
#include <cmath>
#include <cstddef>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

namespace {

using Values = troupe::Array<float>;

constexpr std::size_t kValues = 1 << 16;
constexpr int kWorkers = 4;
constexpr int kSteps = 50;  // of each worker
constexpr float kRate = 0.1F;
constexpr float kNoise = 0.1F;

float signal(std::size_t at) { return std::sin(static_cast<float>(at) * 0.001F); }

class Server {
 public:
  Server() : parameters_(troupe::put(Values(std::vector<float>(kValues, 0.0F)))) {}

  /// A ref is small: whoever wants the values reads them where they lie.
  troupe::Ref<Values> parameters() const { return parameters_; }

  void descend(const Values& gradient) {
    const Values old = parameters_.get();
    troupe::NewArray<float> next(kValues);
    for (std::size_t at = 0; at < kValues; ++at) next.values()[at] = old[at] - kRate * gradient[at];
    parameters_ = troupe::put(std::move(next));  // Who reads the old ones is not disturbed.
    ++steps_;
  }
  int steps() const { return steps_; }

 private:
  troupe::Ref<Values> parameters_;
  int steps_ = 0;
};

void work(unsigned seed, troupe::Actor<Server> server) {
  std::minstd_rand random(seed);
  std::normal_distribution<float> noise(0.0F, kNoise);
  for (int step = 0; step < kSteps; ++step) {
    const troupe::Ref<Values> current = server.call<&Server::parameters>().get();
    const Values parameters = current.get();
    troupe::NewArray<float> gradient(parameters.size());
    for (std::size_t at = 0; at < parameters.size(); ++at)
      gradient.values()[at] = parameters[at] - (signal(at) + noise(random));
    server.call<&Server::descend>(troupe::put(std::move(gradient))).get();
  }
}

void train() {
  const auto server = troupe::spawn<Server>();
  std::vector<troupe::Ref<void>> workers;
  for (unsigned seed = 1; seed <= kWorkers; ++seed)
    workers.push_back(troupe::task<work>(seed, server));
  troupe::get(workers);  // Throws what a worker failed with.

  const Values parameters = server.call<&Server::parameters>().get().get();
  double squares = 0;
  for (std::size_t at = 0; at < kValues; ++at) {
    const double difference = parameters[at] - signal(at);
    squares += difference * difference;
  }
  std::cout << kWorkers << " workers sent " << server.call<&Server::steps>().get()
            << " gradients of " << kValues * sizeof(float) / 1024 << " KiB\n"
            << "the parameters differ from the signal by less than 0.05: "
            << (std::sqrt(squares / kValues) < 0.05 ? "yes" : "no") << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto cluster = troupe::init(argc, argv);
    train();
  } catch (const std::exception& error) {
    std::cerr << "parameter_server: " << error.what() << '\n';
    return 1;
  }
}
