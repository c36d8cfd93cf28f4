//! Sockets: streams and datagrams, Unix and loopback, what calls answer in every state.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use wardian_abi::net::{
    self, Datagram, How, Listener, Stream, UnixListener, UnixStream, encode, encode_unix,
};
use wardian_abi::socket::{
    self, AF_INET, AF_INET6, AF_UNIX, DATAGRAM, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, SOL_SOCKET, STREAM,
};
use wardian_abi::{self as abi, Errno, Fd};

use crate::kit::*;

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn any() -> SocketAddr {
    loopback(0)
}

fn make(family: i32, kind: i32) -> Fd {
    socket::socket(family, kind, 0, false).expect("socket")
}

fn port_of(fd: Fd) -> u16 {
    let mut raw = [0; 128];
    let len = socket::getsockname(fd, &mut raw).expect("getsockname");
    net::decode(&raw[..len]).port()
}

/// A TCP listener and its port.
fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind(&any()).expect("bind");
    let at = listener.local_addr().expect("an address");
    (listener, at)
}

/// Both ends of a TCP connection.
fn connection() -> (Stream, Stream) {
    let (listener, at) = listener();
    let client = Stream::connect(&at, None).expect("connect");
    let (server, _) = listener.accept().expect("accept");
    (client, server)
}

fn recv(fd: Fd, len: usize, flags: i32) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; len];
    let received = socket::recv(fd, &mut buffer, flags, &mut [], &mut [])?;
    buffer.truncate(received.count);
    Ok(buffer)
}

fn send(fd: Fd, data: &[u8]) -> Result<usize, Errno> {
    socket::send(fd, data, MSG_NOSIGNAL, &[], &[])
}

fn option(fd: Fd, level: i32, option: i32) -> Result<i32, Errno> {
    let mut value = [0; 4];
    socket::getsockopt(fd, level, option, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

fn set(fd: Fd, level: i32, option: i32, value: i32) -> Result<(), Errno> {
    socket::setsockopt(fd, level, option, &value.to_ne_bytes())
}

const SO_REUSEADDR: i32 = 2;
const SO_TYPE: i32 = 3;
const SO_ERROR: i32 = 4;
const SO_ACCEPTCONN: i32 = 30;
const SO_PROTOCOL: i32 = 38;
const SO_DOMAIN: i32 = 39;

tests! {
    fn a_pair_is_connected_both_ways() {
        let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
        assert_eq!(abi::write(a, b"there"), Ok(5));
        assert_eq!(abi::write(b, b"back"), Ok(4));
        assert_eq!(read_some(b, 10), Ok(b"there".to_vec()));
        assert_eq!(recv(a, 10, 0), Ok(b"back".to_vec()));
        assert_eq!(socket::getpeername(a, &mut [0; 16]), Ok(2), "nobody has a name");
        assert_eq!(abi::fstat(a).expect("fstat").mode & 0o170_000, 0o140_000);
    }

    fn peeking_leaves_what_is_there() {
        let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
        assert_eq!(send(a, b"abc"), Ok(3));
        assert_eq!(recv(b, 2, MSG_PEEK), Ok(b"ab".to_vec()));
        assert_eq!(recv(b, 9, 0), Ok(b"abc".to_vec()));
        assert_eq!(recv(b, 9, MSG_DONTWAIT), Err(Errno::AGAIN));
    }

    fn the_end_comes_with_shutdown_and_with_close() {
        let (a, b) = UnixStream::pair().expect("a pair");
        (&a).write_all(b"last").expect("write");
        a.shutdown(How::Write).expect("shutdown");
        assert_eq!(send(a.fd(), b"x"), Err(Errno::PIPE));
        assert_eq!(recv(b.fd(), 9, 0), Ok(b"last".to_vec()));
        assert_eq!(recv(b.fd(), 9, 0), Ok(vec![]));
        assert_eq!(send(b.fd(), b"still"), Ok(5), "the other way is open");
        assert_eq!(recv(a.fd(), 9, 0), Ok(b"still".to_vec()));
        drop(b);
        assert_eq!(recv(a.fd(), 9, 0), Ok(vec![]));
    }

    fn closing_unread_is_a_reset() {
        for tcp in [false, true] {
            let (a, b) = match tcp {
                true => {
                    let (client, server) = connection();
                    (client.into_fd(), server.into_fd())
                }
                false => socket::socketpair(STREAM, false).expect("a pair"),
            };
            assert_eq!(send(a, b"unread"), Ok(6));
            assert!(abi::poll_read(b, None).expect("poll"));
            close(b);
            assert_eq!(recv(a, 9, 0), Err(Errno::CONNRESET), "tcp: {tcp}");
            assert_eq!(recv(a, 9, 0), Ok(vec![]), "once");
            assert_eq!(send(a, b"x"), Err(Errno::PIPE));
            close(a);
        }
    }

    fn a_broken_socket_kills() {
        let pid = child(|| {
            let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
            close(b);
            let _ = abi::write(a, b"x");
        });
        assert_eq!(ended(pid).signal(), Some(PIPE));
    }

    fn tcp_learns_late_that_nobody_reads() {
        let (client, server) = connection();
        drop(server);
        assert_eq!(recv(client.fd(), 1, 0), Ok(vec![]));
        assert_eq!(send(client.fd(), b"x"), Ok(1), "the first is lost");
        std::thread::sleep(MOMENT);
        assert_eq!(send(client.fd(), b"x"), Err(Errno::PIPE));
    }

    fn servers_and_clients_meet() {
        let (listener, at) = listener();
        let pid = child(|| {
            let mut client = Stream::connect(&at, None).expect("connect");
            client.write_all(b"question").expect("write");
            client.shutdown(How::Write).expect("shutdown");
            let mut answer = String::new();
            client.read_to_string(&mut answer).expect("read");
            assert_eq!(answer, "answer");
        });
        let (mut server, from) = listener.accept().expect("accept");
        assert_eq!(from.ip(), at.ip());
        assert_eq!(server.local_addr(), Ok(at));
        assert_eq!(server.peer_addr(), Ok(from));
        let mut question = String::new();
        server.read_to_string(&mut question).expect("read");
        assert_eq!(question, "question");
        server.write_all(b"answer").expect("write");
        drop(server);
        succeeded(pid);
    }

    fn much_goes_through_unharmed() {
        let (mut client, server) = connection();
        let data: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let sent = data.clone();
        let pid = child(move || {
            (&server).write_all(&sent).expect("write");
            let _ = server.shutdown(How::Both);
        });
        let mut got = vec![0; data.len()];
        client.read_exact(&mut got).expect("read");
        assert!(got == data);
        succeeded(pid);
    }

    fn nobody_listens() {
        let fd = make(AF_INET, STREAM);
        let bound = make(AF_INET, STREAM);
        socket::bind(bound, &encode(&any())).expect("bind");
        let at = loopback(port_of(bound));
        assert_eq!(socket::connect(fd, &encode(&at)), Err(Errno::CONNREFUSED));
        socket::listen(bound, 1).expect("listen");
        assert_eq!(socket::connect(fd, &encode(&at)), Ok(()), "a refusal is not the end");
        assert_eq!(socket::connect(fd, &encode(&at)), Err(Errno::ISCONN));
    }

    fn connecting_without_waiting() {
        let (listener, at) = listener();
        let fd = make(AF_INET, STREAM);
        abi::set_nonblocking(fd, true).expect("nonblocking");
        assert_eq!(socket::connect(fd, &encode(&at)), Err(Errno::INPROGRESS));
        assert!(abi::poll_write(fd, None).expect("poll"));
        assert_eq!(option(fd, SOL_SOCKET, SO_ERROR), Ok(0));
        let (_server, _) = listener.accept().expect("accept");
        drop(listener);
        let fd = make(AF_INET, STREAM);
        abi::set_nonblocking(fd, true).expect("nonblocking");
        let refused = socket::connect(fd, &encode(&at));
        assert!(matches!(refused, Err(Errno::INPROGRESS | Errno::CONNREFUSED)), "{refused:?}");
        if refused == Err(Errno::INPROGRESS) {
            assert!(abi::poll_write(fd, None).expect("poll"));
            assert_eq!(option(fd, SOL_SOCKET, SO_ERROR), Ok(Errno::CONNREFUSED.to_linux()));
            assert_eq!(option(fd, SOL_SOCKET, SO_ERROR), Ok(0), "told once");
        }
    }

    fn accepting_without_waiting() {
        let (listener, at) = listener();
        abi::set_nonblocking(listener.fd(), true).expect("nonblocking");
        assert_eq!(socket::accept(listener.fd(), false, &mut [0; 16]), Err(Errno::AGAIN));
        assert_eq!(abi::poll_read(listener.fd(), Some(Duration::ZERO)), Ok(false));
        let _client = Stream::connect(&at, None).expect("connect");
        assert_eq!(abi::poll_read(listener.fd(), None), Ok(true));
        let (server, _) = socket::accept(listener.fd(), false, &mut [0; 16]).expect("accept");
        assert_eq!(abi::nonblocking(server), Ok(false), "that is not inherited");
    }

    fn polling_tells_the_truth() {
        let (client, server) = connection();
        assert_eq!(abi::poll_read(client.fd(), Some(Duration::ZERO)), Ok(false));
        assert_eq!(abi::poll_write(client.fd(), Some(Duration::ZERO)), Ok(true));
        (&server).write_all(b"x").expect("write");
        assert_eq!(abi::poll_read(client.fd(), None), Ok(true));
        assert_eq!(recv(client.fd(), 1, 0), Ok(b"x".to_vec()));
        abi::set_nonblocking(client.fd(), true).expect("nonblocking");
        let block = vec![0; 1 << 16];
        while send(client.fd(), &block).is_ok() {}
        std::thread::sleep(MOMENT);
        while send(client.fd(), &block).is_ok() {}
        assert_eq!(abi::poll_write(client.fd(), Some(Duration::ZERO)), Ok(false), "it is full");
        drop(server);
        assert_eq!(abi::poll_read(client.fd(), None), Ok(true), "the end");
    }

    fn an_address_is_in_use() {
        let (listener, at) = listener();
        let fd = make(AF_INET, STREAM);
        assert_eq!(socket::bind(fd, &encode(&at)), Err(Errno::ADDRINUSE));
        set(fd, SOL_SOCKET, SO_REUSEADDR, 1).expect("reuse");
        assert_eq!(socket::bind(fd, &encode(&at)), Err(Errno::ADDRINUSE), "one listens there");
        let everywhere = SocketAddr::from(([0, 0, 0, 0], at.port()));
        assert_eq!(socket::bind(fd, &encode(&everywhere)), Err(Errno::ADDRINUSE));
        drop(listener);
        assert_eq!(socket::bind(fd, &encode(&at)), Ok(()));
        assert_eq!(socket::bind(fd, &encode(&any())), Err(Errno::INVAL), "it has one");
    }

    fn addresses_that_are_not_ours() {
        let fd = make(AF_INET, STREAM);
        let other = SocketAddr::from(([192, 0, 2, 1], 0));
        assert_eq!(socket::bind(fd, &encode(&other)), Err(Errno::ADDRNOTAVAIL));
        assert_eq!(socket::bind(fd, &encode_unix(b"/tmp/x")), Err(Errno::INVAL), "too short");
        assert_eq!(socket::bind(fd, &encode(&"[::1]:0".parse().expect("an address"))), Err(Errno::AFNOSUPPORT));
        let unix = make(AF_UNIX, STREAM);
        assert_eq!(socket::bind(unix, &encode(&any())), Err(Errno::INVAL));
    }

    fn another_loopback_address() {
        let at = SocketAddr::from(([127, 3, 2, 1], 0));
        let listener = Listener::bind(&at).expect("bind");
        let at = listener.local_addr().expect("an address");
        let _client = Stream::connect(&at, None).expect("connect");
        let refused = Stream::connect(&loopback(at.port()), None).map(drop);
        assert_eq!(refused, Err(Errno::CONNREFUSED));
    }

    fn states_in_which_calls_are_refused() {
        let tcp = make(AF_INET, STREAM);
        let unix = make(AF_UNIX, STREAM);
        let udp = make(AF_INET, DATAGRAM);
        assert_eq!(recv(tcp, 1, 0), Err(Errno::NOTCONN));
        assert_eq!(send(tcp, b"x"), Err(Errno::PIPE));
        assert_eq!(recv(unix, 1, 0), Err(Errno::INVAL));
        assert_eq!(send(unix, b"x"), Err(Errno::NOTCONN));
        assert_eq!(send(udp, b"x"), Err(Errno::DESTADDRREQ));
        assert_eq!(socket::listen(udp, 1), Err(Errno::NOTSUP));
        assert_eq!(socket::listen(unix, 1), Err(Errno::INVAL));
        assert_eq!(socket::accept(tcp, false, &mut [0; 16]), Err(Errno::INVAL));
        assert_eq!(socket::accept(udp, false, &mut [0; 16]), Err(Errno::NOTSUP));
        assert_eq!(socket::shutdown(tcp, 2), Err(Errno::NOTCONN));
        assert_eq!(socket::shutdown(tcp, 9), Err(Errno::INVAL));
        assert_eq!(socket::getpeername(tcp, &mut [0; 16]), Err(Errno::NOTCONN));
        let ends = pipe();
        assert_eq!(socket::listen(ends.read, 1), Err(Errno::NOTSOCK));
        assert_eq!(socket::listen(999, 1), Err(Errno::BADF));
        assert_eq!(socket::socket(99, STREAM, 0, false), Err(Errno::AFNOSUPPORT));
        assert_eq!(socket::socket(AF_INET, STREAM, 17, false), Err(Errno::PROTONOSUPPORT));
    }

    fn options_say_what_a_socket_is() {
        let (listener, _) = listener();
        assert_eq!(option(listener.fd(), SOL_SOCKET, SO_TYPE), Ok(STREAM));
        assert_eq!(option(listener.fd(), SOL_SOCKET, SO_DOMAIN), Ok(AF_INET));
        assert_eq!(option(listener.fd(), SOL_SOCKET, SO_PROTOCOL), Ok(6));
        assert_eq!(option(listener.fd(), SOL_SOCKET, SO_ACCEPTCONN), Ok(1));
        assert_eq!(option(listener.fd(), SOL_SOCKET, SO_REUSEADDR), Ok(1));
        assert_eq!(option(listener.fd(), SOL_SOCKET, 9999), Err(Errno::NOPROTOOPT));
        assert_eq!(set(listener.fd(), 6, 1, 1), Ok(()));
        assert_eq!(option(listener.fd(), 6, 1), Ok(1));
        let udp = make(AF_INET6, DATAGRAM);
        assert_eq!(option(udp, SOL_SOCKET, SO_TYPE), Ok(DATAGRAM));
        assert_eq!(option(udp, SOL_SOCKET, SO_PROTOCOL), Ok(17));
        assert_eq!(option(udp, SOL_SOCKET, SO_ACCEPTCONN), Ok(0));
    }

    fn settings_of_probes_are_kept() {
        const TCP: i32 = 6;
        const KEEPALIVE: i32 = 9;
        let (listener, at) = listener();
        assert_eq!(set(listener.fd(), SOL_SOCKET, KEEPALIVE, 1), Ok(()));
        // TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT and TCP_USER_TIMEOUT: a value, and the first one that is too small.
        for (which, value, wrong) in [(4, 30, 0), (5, 10, 0), (6, 3, 0), (18, 5_000, -1)] {
            assert_eq!(set(listener.fd(), TCP, which, value), Ok(()));
            assert_eq!(set(listener.fd(), TCP, which, wrong), Err(Errno::INVAL));
            assert_eq!(option(listener.fd(), TCP, which), Ok(value));
        }
        for (which, wrong) in [(4, 32_768), (5, 32_768), (6, 128)] {
            assert_eq!(set(listener.fd(), TCP, which, wrong), Err(Errno::INVAL));
        }
        let client = Stream::connect(&at, None).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        assert_eq!(option(server.fd(), SOL_SOCKET, KEEPALIVE), Ok(1));
        assert_eq!(option(server.fd(), TCP, 4), Ok(30), "it has the listener's");
        assert_eq!((option(client.fd(), TCP, 6), option(client.fd(), TCP, 18)), (Ok(9), Ok(0)));
        let udp = make(AF_INET, DATAGRAM);
        assert!(set(udp, TCP, 4, 30).is_err());
    }

    fn receiving_ends_after_its_timeout() {
        let (client, _server) = connection();
        client.set_timeouts(Some(Duration::from_millis(20)), None).expect("a timeout");
        assert_eq!(recv(client.fd(), 1, 0), Err(Errno::AGAIN));
    }

    fn ipv6_has_a_loopback_too() {
        let at: SocketAddr = "[::1]:0".parse().expect("an address");
        let Ok(listener) = Listener::bind(&at) else { return };
        let at = listener.local_addr().expect("an address");
        let client = Stream::connect(&at, None).expect("connect");
        let (_server, from) = listener.accept().expect("accept");
        assert_eq!(client.local_addr(), Ok(from));
        assert_eq!(from.ip(), at.ip());
    }

    fn ipv6_servers_serve_ipv4_unless_told_otherwise() {
        let fd = make(AF_INET6, STREAM);
        let everywhere: SocketAddr = "[::]:0".parse().expect("an address");
        if socket::bind(fd, &encode(&everywhere)).is_err() {
            return;
        }
        socket::listen(fd, 1).expect("listen");
        let client = Stream::connect(&loopback(port_of(fd)), None).expect("connect");
        let mut raw = [0; 128];
        let (server, len) = socket::accept(fd, false, &mut raw).expect("accept");
        let from = net::decode(&raw[..len]);
        assert_eq!(from.ip().to_string(), "::ffff:127.0.0.1");
        assert_eq!(from.port(), client.local_addr().expect("an address").port());
        close(server);
        let alone = make(AF_INET6, STREAM);
        set(alone, 41, 26, 1).expect("v6only");
        socket::bind(alone, &encode(&everywhere)).expect("bind");
        socket::listen(alone, 1).expect("listen");
        assert_eq!(Stream::connect(&loopback(port_of(alone)), None).map(drop), Err(Errno::CONNREFUSED));
    }

    fn datagrams_keep_their_bounds() {
        let (a, b) = (Datagram::bind(&any()).expect("bind"), Datagram::bind(&any()).expect("bind"));
        let to = b.local_addr().expect("an address");
        assert_eq!(a.send_to(b"one", &to), Ok(3));
        assert_eq!(a.send_to(b"", &to), Ok(0));
        assert_eq!(a.send_to(b"three", &to), Ok(5));
        let mut buffer = [0; 2];
        assert_eq!(b.recv_from(&mut buffer), Ok((2, a.local_addr().expect("an address"))), "the rest is lost");
        assert_eq!(b.recv_from(&mut buffer).map(|got| got.0), Ok(0));
        let received = socket::recv(b.fd(), &mut buffer, socket::MSG_TRUNC, &mut [], &mut []).expect("recv");
        assert_eq!((received.count, received.flags & socket::MSG_TRUNC), (5, socket::MSG_TRUNC));
        assert_eq!(a.send_to(&[0; 65_508], &to), Err(Errno::MSGSIZE));
    }

    fn a_connected_datagram_socket_hears_one_peer() {
        let [a, b, c] = [(); 3].map(|()| Datagram::bind(&any()).expect("bind"));
        let [to_a, to_b] = [&a, &b].map(|socket| socket.local_addr().expect("an address"));
        a.connect(&to_b).expect("connect");
        assert_eq!(c.send_to(b"stranger", &to_a), Ok(8));
        assert_eq!(b.send_to(b"peer", &to_a), Ok(4));
        assert_eq!(recv(a.fd(), 9, 0), Ok(b"peer".to_vec()));
        assert_eq!(recv(a.fd(), 9, MSG_DONTWAIT), Err(Errno::AGAIN));
        drop(b);
        assert_eq!(a.send(b"x"), Ok(1));
        std::thread::sleep(MOMENT);
        assert_eq!(a.send(b"x"), Err(Errno::CONNREFUSED));
    }

    fn unix_sockets_are_files() {
        let listener = UnixListener::bind(b"s").expect("bind");
        let stat = abi::stat(abi::Dir::CWD, b"s", false).expect("stat");
        assert_eq!(stat.mode & 0o170_000, 0o140_000);
        assert_eq!(UnixListener::bind(b"s").map(drop), Err(Errno::ADDRINUSE));
        assert_eq!(std::fs::read("s").map_err(Errno::from), Err(Errno::NXIO));
        let mut client = UnixStream::connect(b"s").expect("connect");
        let mut server = listener.accept().expect("accept");
        client.write_all(b"hi").expect("write");
        let mut got = [0; 2];
        server.read_exact(&mut got).expect("read");
        assert_eq!(&got, b"hi");
        let mut raw = [0; 128];
        let len = socket::getpeername(client.fd(), &mut raw).expect("getpeername");
        assert_eq!(&raw[..len], b"\x01\x00s\0");
        drop(listener);
        assert_eq!(UnixStream::connect(b"s").map(drop), Err(Errno::CONNREFUSED));
        assert_eq!(UnixStream::connect(b"t").map(drop), Err(Errno::NOENT));
        std::fs::write("file", "").expect("a file");
        assert_eq!(UnixStream::connect(b"file").map(drop), Err(Errno::CONNREFUSED));
    }

    fn abstract_names_are_no_files() {
        let name = format!("\0usertests-{}", abi::getpid());
        let listener = UnixListener::bind(name.as_bytes()).expect("bind");
        assert_eq!(UnixListener::bind(name.as_bytes()).map(drop), Err(Errno::ADDRINUSE));
        let _client = UnixStream::connect(name.as_bytes()).expect("connect");
        let _server = listener.accept().expect("accept");
        drop(listener);
        assert_eq!(UnixStream::connect(name.as_bytes()).map(drop), Err(Errno::CONNREFUSED));
    }

    fn a_full_backlog_makes_unix_clients_wait() {
        let fd = make(AF_UNIX, STREAM);
        socket::bind(fd, &encode_unix(b"s")).expect("bind");
        socket::listen(fd, 0).expect("listen");
        let _first = UnixStream::connect(b"s").expect("connect");
        let second = make(AF_UNIX, STREAM);
        abi::set_nonblocking(second, true).expect("nonblocking");
        assert_eq!(socket::connect(second, &encode_unix(b"s")), Err(Errno::AGAIN));
        let pid = child(|| drop(UnixStream::connect(b"s").expect("connect")));
        std::thread::sleep(MOMENT);
        for _ in 0..2 {
            let (server, _) = socket::accept(fd, false, &mut [0; 16]).expect("accept");
            close(server);
        }
        succeeded(pid);
    }

    fn unix_datagrams_are_not_lost() {
        let receiver = make(AF_UNIX, DATAGRAM);
        socket::bind(receiver, &encode_unix(b"r")).expect("bind");
        let sender = make(AF_UNIX, DATAGRAM);
        assert_eq!(send(sender, b"x"), Err(Errno::NOTCONN));
        assert_eq!(socket::send(sender, b"one", 0, &encode_unix(b"r"), &[]), Ok(3));
        socket::connect(sender, &encode_unix(b"r")).expect("connect");
        assert_eq!(send(sender, b"two"), Ok(3));
        assert_eq!(recv(receiver, 9, 0), Ok(b"one".to_vec()));
        assert_eq!(recv(receiver, 9, 0), Ok(b"two".to_vec()));
        let mut sent = 0;
        while socket::send(sender, b"x", MSG_DONTWAIT, &[], &[]).is_ok() {
            sent += 1;
        }
        assert!(sent > 0);
        assert_eq!(abi::poll_write(sender, Some(Duration::ZERO)), Ok(false));
        close(receiver);
        assert_eq!(send(sender, b"x"), Err(Errno::CONNREFUSED));
    }

    fn descriptors_travel_through_unix_sockets() {
        let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
        let ends = pipe();
        assert_eq!(socket::send(a, b"fd", 0, &[], &[ends.write]), Ok(2));
        close(ends.write);
        let (mut data, mut rights) = ([0; 8], [0; 4]);
        let received = socket::recv(b, &mut data, 0, &mut [], &mut rights).expect("recv");
        assert_eq!((received.count, received.rights), (2, 1));
        assert_eq!(abi::write(rights[0], b"through"), Ok(7));
        close(rights[0]);
        assert_eq!(read_some(ends.read, 9), Ok(b"through".to_vec()));
        assert_eq!(read_some(ends.read, 9), Ok(vec![]), "there is no other copy");
        assert_eq!(socket::send(a, b"fd", 0, &[], &[999]), Err(Errno::BADF));
    }

    fn descriptors_nobody_takes_are_closed() {
        let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
        let ends = pipe();
        assert_eq!(socket::send(a, b"x", 0, &[], &[ends.write]), Ok(1));
        assert_eq!(socket::send(a, b"y", 0, &[], &[]), Ok(1));
        close(ends.write);
        assert_eq!(recv(b, 9, 0), Ok(b"x".to_vec()), "what belongs to descriptors comes alone");
        assert_eq!(read_some(ends.read, 1), Ok(vec![]));
        let ends = pipe();
        assert_eq!(socket::send(a, b"x", 0, &[], &[ends.write]), Ok(1));
        close(ends.write);
        close(b);
        assert_eq!(read_some(ends.read, 1), Ok(vec![]));
        close(a);
    }

    fn children_share_sockets() {
        let (a, b) = socket::socketpair(STREAM, false).expect("a pair");
        let pid = child(|| {
            close(a);
            assert_eq!(send(b, b"child"), Ok(5));
        });
        close(b);
        succeeded(pid);
        assert_eq!(recv(a, 9, 0), Ok(b"child".to_vec()));
        assert_eq!(recv(a, 9, 0), Ok(vec![]));
    }

    fn a_signal_interrupts_a_wait() {
        flag(USR1);
        let (listener, _) = listener();
        let parent = abi::getpid();
        let pid = child(|| {
            std::thread::sleep(MOMENT);
            kill(parent, USR1);
        });
        assert_eq!(socket::accept(listener.fd(), false, &mut [0; 16]), Err(Errno::INTR));
        succeeded(pid);
    }

    fn localhost_is_the_loopback() {
        let found = net::look_up("localhost").expect("it is known");
        assert!(found.iter().all(|ip| ip.is_loopback()), "{found:?}");
        assert_eq!(net::look_up("127.0.0.9"), Ok(vec!["127.0.0.9".parse().expect("an address")]));
    }
}
