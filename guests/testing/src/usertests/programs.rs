//! What a test's child becomes when it is to be another program: `usertests --NAME`.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;

use wardian_abi::net::{self, How, Listener, Stream};
use wardian_abi::{self as abi, Disposition};

use crate::kit;

type Program = fn(&[String]) -> ExitCode;

/// The program of this name.
pub fn named(name: &str) -> Option<Program> {
    Some(match name {
        "--args" => args,
        "--cat" => cat,
        "--code" => code,
        "--cwd" => cwd,
        "--echo" => echo,
        "--env" => env,
        "--fds" => fds,
        "--fetch" => fetch,
        "--pid" => pid,
        "--signals" => signals,
        "--sleep" => sleep,
        "--umask" => umask,
        _ => return None,
    })
}

/// Where this program lies.
pub fn path() -> Vec<u8> {
    if cfg!(target_os = "wasi") {
        return b"/bin/usertests".to_vec();
    }
    std::env::current_exe().expect("it has a name").into_os_string().into_encoded_bytes()
}

/// All arguments, each in brackets.
fn args(_: &[String]) -> ExitCode {
    let all: Vec<String> =
        abi::args().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    println!("{all:?}");
    ExitCode::SUCCESS
}

fn cat(_: &[String]) -> ExitCode {
    abi::write_all(1, &kit::read_all(0)).expect("write");
    ExitCode::SUCCESS
}

/// A server at a port of the loopback network: returns to each of so many clients what it sends.
fn echo(words: &[String]) -> ExitCode {
    let port = words[0].parse::<u16>().expect("a port");
    let listener = Listener::bind(&SocketAddr::from(([127, 0, 0, 1], port))).expect("bind");
    println!("ready");
    for _ in 0..words[1].parse::<u32>().expect("a number") {
        let (client, _) = listener.accept().expect("accept");
        std::io::copy(&mut &client, &mut &client).expect("copy");
    }
    ExitCode::SUCCESS
}

/// A client: connects to a host and port, sends a line, and prints what comes back.
fn fetch(words: &[String]) -> ExitCode {
    let found = match net::look_up(&words[0]) {
        Ok(found) => found,
        Err(error) => {
            println!("{error:?}");
            return ExitCode::FAILURE;
        }
    };
    let to = SocketAddr::new(found[0], words[1].parse::<u16>().expect("a port"));
    match Stream::connect(&to, None) {
        Ok(mut stream) => {
            stream.write_all(b"from inside\n").expect("write");
            stream.shutdown(How::Write).expect("shutdown");
            std::io::copy(&mut stream, &mut std::io::stdout()).expect("copy");
            ExitCode::SUCCESS
        }
        Err(errno) => {
            println!("{errno}");
            ExitCode::FAILURE
        }
    }
}

fn code(words: &[String]) -> ExitCode {
    ExitCode::from(words[0].parse::<u8>().expect("a code"))
}

fn cwd(_: &[String]) -> ExitCode {
    println!("{}", String::from_utf8_lossy(&abi::getcwd().expect("getcwd")));
    ExitCode::SUCCESS
}

fn env(_: &[String]) -> ExitCode {
    for pair in abi::environ() {
        println!("{}", String::from_utf8_lossy(&pair));
    }
    ExitCode::SUCCESS
}

/// The numbers of its open descriptors.
fn fds(_: &[String]) -> ExitCode {
    let open: Vec<i32> = (0..64).filter(|&fd| abi::cloexec(fd).is_ok()).collect();
    println!("{open:?}");
    ExitCode::SUCCESS
}

fn pid(_: &[String]) -> ExitCode {
    println!("{}", abi::getpid());
    ExitCode::SUCCESS
}

/// The signals that are not default. Natively, Rust sets three of them before `main`.
fn signals(_: &[String]) -> ExitCode {
    const BUS: i32 = 7;
    const SEGV: i32 = 11;
    for signal in (1..32).filter(|signal| ![BUS, SEGV, kit::PIPE].contains(signal)) {
        match abi::disposition(signal) {
            Ok(Disposition::Default) => {}
            Ok(other) => println!("{signal} {other:?}"),
            Err(errno) => println!("{signal} {errno:?}"),
        }
    }
    ExitCode::SUCCESS
}

fn sleep(_: &[String]) -> ExitCode {
    kit::sleep_for_ever()
}

fn umask(_: &[String]) -> ExitCode {
    println!("{:o}", abi::umask(0));
    ExitCode::SUCCESS
}
