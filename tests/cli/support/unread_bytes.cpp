#include "support/unread_bytes.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

/// A line of /proc/net/tcp. Addresses are ADDRESS:PORT in hexadecimal digits.
struct TcpSocket {
  std::string local, remote;
  std::uint64_t unread = 0;
  std::string inode;
};

std::vector<TcpSocket> tcp_sockets() {
  std::vector<TcpSocket> sockets;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // the names of the columns
  while (std::getline(table, line)) {
    std::istringstream columns(line);
    TcpSocket socket;
    std::string number, state, queues, timer, retransmits, user, timeout;
    columns >> number >> socket.local >> socket.remote >> state >> queues >> timer >> retransmits >>
        user >> timeout >> socket.inode;
    if (!columns) continue;
    socket.unread = std::stoull(queues.substr(queues.find(':') + 1), nullptr, 16);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

int port_of(const std::string& address) {
  return std::stoi(address.substr(address.find(':') + 1), nullptr, 16);
}

/// As /proc/PID/fd names them: "socket:[INODE]".
std::set<std::string> open_files_of(pid_t process) {
  std::set<std::string> files;
  const auto folder = fs::path("/proc") / std::to_string(process) / "fd";
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end;
       each.increment(failed)) {
    std::error_code closed;
    files.insert(fs::read_symlink(each->path(), closed).string());
  }
  return files;
}

}  // namespace

std::uint64_t unread_bytes(pid_t sender, int port) {
  const auto sockets = tcp_sockets();
  const auto files = open_files_of(sender);
  std::set<std::string> senders;
  for (const auto& socket : sockets) {
    if (port_of(socket.remote) == port && files.contains("socket:[" + socket.inode + "]"))
      senders.insert(socket.local);
  }
  std::uint64_t bytes = 0;
  for (const auto& socket : sockets) {
    if (port_of(socket.local) == port && senders.contains(socket.remote)) bytes += socket.unread;
  }
  return bytes;
}

}  // namespace troupe::test
