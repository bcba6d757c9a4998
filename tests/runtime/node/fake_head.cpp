#include "fake_head.hpp"

#include "wire/codec.hpp"

namespace troupe::node::test {

transport::Secret FakeHead::token() {
  transport::Secret token;
  token.fill(7);
  return token;
}

FakeHead::FakeHead(boost::asio::io_context& loop) {
  listener_ = transport::Listener::tcp(loop, "127.0.0.1", 0, [this](transport::Socket socket) {
    transport::ServerOptions options;
    options.cluster = "test";
    options.refuse = [](const transport::Caller& caller) {
      return caller.role == wire::Role::NODE ? std::string() : std::string("not a node");
    };
    options.key = [](const transport::Caller&) { return token(); };
    transport::accept(
        std::move(socket), options,
        [this](transport::ConnectionPtr connection, transport::Accepted) {
          connections_.push_back(connection);
          std::weak_ptr<transport::Connection> weak = connection;
          connection->hand_over(
              {}, [this, weak](wire::Message::Reader message) { on_message(weak.lock(), message); },
              [](const std::string&) {});
        },
        [](transport::Denied) {});
  });
}

void FakeHead::on_message(const transport::ConnectionPtr& from, wire::Message::Reader message) {
  switch (message.which()) {
    case wire::Message::NODE_JOIN:
      return on_join(from, message.getNodeJoin());
    case wire::Message::NODE_RESUME:
      return on_resume(from, message.getNodeResume());
    case wire::Message::PROCESS_READY:
      ready[message.getProcessReady().getProcess()] =
          static_cast<pid_t>(message.getProcessReady().getPid());
      return;
    case wire::Message::PROCESS_EXITED:
      exited[message.getProcessExited().getProcess()] =
          runtime::read_failure(message.getProcessExited().getFailure());
      return;
    case wire::Message::RELAY:
      if (message.getRelay().isRequest()) {
        auto ask = message.getRelay().getRequest();
        answers[ask.getId()] = ask.getActorFind().getName();
      }
      return;
    case wire::Message::HEARTBEAT: {
      ++beats;
      transport::Outgoing out;
      out.root().setHeartbeat(message.getHeartbeat());
      if (echoes) node_->send(out);
      return;
    }
    case wire::Message::NODE_STOOD_STILL:
      ++stood_still;
      return;
    case wire::Message::PROGRAM_REQUEST: {
      transport::Outgoing out;
      auto chunk = out.root().initProgramChunk();
      serve_program_request(*image, message.getProgramRequest(), chunk);
      if (message.getProgramRequest().getOffset() != kDigestOnly) ++chunks;
      if (spoil) spoil(chunk);
      return from->send(out);
    }
    default:
      return;
  }
}

void FakeHead::on_join(const transport::ConnectionPtr& from, wire::NodeJoin::Reader join) {
  Joined one;
  one.name = join.getName();
  one.host = join.getHost();
  one.machine = join.getMachine();
  for (auto amount : join.getResources()) one.resources[amount.getName()] = amount.getUnits();
  for (auto label : join.getLabels()) one.labels[label.getKey()] = label.getValue();
  one.gpus = join.getGpus().size();
  joined.push_back(one);
  welcome_ = transport::Outgoing();
  auto answer = welcome_.root().initNodeJoined();
  answer.setNode(static_cast<std::uint32_t>(joined.size()));
  answer.setCluster("test");
  transport::Bytes32 secret{};
  secret.fill(9);
  if (takes_back) answer.setSecret({secret.data(), secret.size()});
  if (!is_slow) from->send(welcome_);
  node_ = transport::ResumableLine::make(from);
  node_->start([this](wire::Message::Reader message) { on_message(node_->connection(), message); },
               [](const std::string&) {});
  if (takes_back) node_->keep();
}

void FakeHead::on_resume(const transport::ConnectionPtr& from, wire::NodeResume::Reader resume) {
  transport::Outgoing out;
  if (!refuses_with.empty()) {
    out.root().setShutdown(refuses_with);
    return from->send(out);
  }
  out.root().setNodeResumed(node_->received());
  from->send(out);
  node_->resume(from, resume.getReceived());
  ++resumed;
}

void FakeHead::welcome() { node_->connection()->send(welcome_); }

void FakeHead::send(transport::Outgoing& message) { node_->send(message); }

void FakeHead::start_job(std::uint64_t job, const Program& program) {
  transport::Outgoing out;
  auto started = out.root().initJobStarted();
  started.setJob(job);
  write_program(started.initProgram(), program);
  auto driver = started.initDriver();
  driver.setHost("127.0.0.1");
  driver.setPort(port());
  driver.setProcess(900);
  send(out);
}

void FakeHead::end_job(std::uint64_t job) {
  transport::Outgoing out;
  out.root().setJobEnded(job);
  send(out);
}

void FakeHead::start_process(std::uint64_t process, std::uint64_t job,
                             const std::vector<std::uint32_t>& gpus) {
  transport::Outgoing out;
  auto start = out.root().initStartProcess();
  start.setProcess(process);
  start.setJob(job);
  auto list = start.initGpus(static_cast<unsigned>(gpus.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, gpus[i]);
  send(out);
}

void FakeHead::stop_process(std::uint64_t process, const std::string& why) {
  transport::Outgoing out;
  auto stop = out.root().initStopProcess();
  stop.setProcess(process);
  stop.setWhy(why);
  send(out);
}

void FakeHead::command(std::uint64_t process, std::uint64_t id, const std::string& text) {
  transport::Outgoing out;
  auto relay = out.root().initRelay();
  relay.setProcess(process);
  auto tell = relay.initNotice();
  tell.setId(id);
  tell.initRefused().setMessage(text);
  send(out);
}

void FakeHead::shut_down(const std::string& why) {
  transport::Outgoing out;
  out.root().setShutdown(why);
  send(out);
}

void FakeHead::cut() { node_->connection()->close(); }

void FakeHead::vanish() {
  if (node_) node_->close();
  for (auto& connection : connections_) connection->close();
  connections_.clear();
  node_.reset();
}

}  // namespace troupe::node::test
