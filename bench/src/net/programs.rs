//! The Python programs, for both sides.

/// Sends requests one after the other and prints the median of their times.
pub(super) const ROUND_TRIP: &str = r#"
import socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.create_connection((host, port))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
ask = f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
times = []
for _ in range(count):
    start = time.perf_counter()
    s.sendall(ask)
    s.recv(4096)
    times.append(time.perf_counter() - start)
times.sort()
print(times[count // 2])
"#;

/// Sends bytes to another process and then single bytes back and forth; prints what both took.
pub(super) const LOOPBACK: &str = r#"
import socket, subprocess, sys, time
TRIPS = 5000
if len(sys.argv) == 3:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer, left = bytearray(1 << 18), int(sys.argv[1])
    while left:
        left -= s.recv_into(buffer)
    for _ in range(TRIPS + 1):
        s.sendall(b"x")
        s.recv(1)
    sys.exit()
listener = socket.create_server(("127.0.0.1", 0))
size = int(sys.argv[1])
other = subprocess.Popen([sys.executable, __file__, str(size), str(listener.getsockname()[1])])
s, _ = listener.accept()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
piece, left = bytes(1 << 18), size
start = time.perf_counter()
while left:
    left -= s.send(piece[:left])
s.recv(1)
bulk = time.perf_counter() - start
start = time.perf_counter()
for _ in range(TRIPS):
    s.sendall(b"x")
    s.recv(1)
trip = (time.perf_counter() - start) / TRIPS
s.sendall(b"x")
other.wait()
print(bulk, trip)
"#;

/// Keeps connections that have had one request each.
pub(super) const IDLE: &str = r#"
import os, socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def wait(path):
    while not os.path.exists(path):
        time.sleep(0.05)
ask = f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
def connected():
    s = socket.create_connection((host, port))
    s.sendall(ask)
    s.recv(4096)
    return s
kept = [connected()]
open("/tmp/started", "w").close()
wait("/tmp/go")
kept += [connected() for _ in range(count)]
open("/tmp/connected", "w").close()
wait("/tmp/end")
"#;

/// What [`CROWD`] says if it was not ready in time.
pub(super) const LATE: &str = "started too late";

/// Sends so many requests a second from a given time on, and prints what each took when all others are done as well: printing
/// and exiting is work that would delay the last requests of those that are not.
pub(super) const CROWD: &str = r#"
import random, socket, sys, time
host, port, begin = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rate, seconds, end = int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
s = socket.create_connection((host, port))
ask = f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
s.sendall(ask); s.recv(4096)
if time.time() > begin:
    sys.exit("started too late: it would send its requests without a pause")
begin += random.random() / rate
times = []
for at in range(rate * seconds):
    time.sleep(max(0, begin + at / rate - time.time()))
    start = time.perf_counter()
    s.sendall(ask)
    s.recv(4096)
    times.append(time.perf_counter() - start)
time.sleep(max(0, end - time.time()))
print(*times, sep="\n")
"#;

pub(super) const ALL: &[(&str, &str)] = &[
    ("/tmp/round.py", ROUND_TRIP),
    ("/tmp/loopback.py", LOOPBACK),
    ("/tmp/idle.py", IDLE),
    ("/tmp/crowd.py", CROWD),
];
