//! A program as someone else would write it, for plain WASI: prints its arguments and environment, its preopened
//! directories and open descriptors, and what `./file`, `/tmp/file` and the files named as arguments hold.

fn main() {
    let args: Vec<String> = std::env::args().collect();
    println!("args {args:?}");
    for (name, value) in std::env::vars() {
        println!("env {name}={value}");
    }
    for (fd, name) in preopens() {
        println!("preopen {fd} {name}");
    }
    println!("open {:?}", open_descriptors());
    for path in ["./file", "/tmp/file", "../file"].into_iter().chain(args.iter().skip(1).map(String::as_str))
    {
        match std::fs::read_to_string(path) {
            Ok(text) => println!("{path} {text:?}"),
            Err(error) => println!("{path} {}", error.kind()),
        }
    }
}

#[cfg(target_os = "wasi")]
fn open_descriptors() -> Vec<u32> {
    // SAFETY: asks about a number that may or may not be a descriptor.
    (0..64).filter(|&fd| unsafe { wasi::fd_fdstat_get(fd) }.is_ok()).collect()
}

#[cfg(target_os = "wasi")]
fn preopens() -> Vec<(u32, String)> {
    (3..).map_while(|fd| Some((fd, preopen_name(fd)?))).collect()
}

#[cfg(target_os = "wasi")]
fn preopen_name(fd: u32) -> Option<String> {
    // SAFETY: asks about a number that may or may not be a descriptor, and writes to memory of our own.
    let prestat = unsafe { wasi::fd_prestat_get(fd) }.ok()?;
    // SAFETY: a prestat has one variant, and this is its field.
    let length = unsafe { prestat.u.dir.pr_name_len };
    let mut name = vec![0; length];
    // SAFETY: the buffer has the length passed.
    unsafe { wasi::fd_prestat_dir_name(fd, name.as_mut_ptr(), name.len()) }.ok()?;
    Some(String::from_utf8_lossy(&name).into_owned())
}

#[cfg(not(target_os = "wasi"))]
fn open_descriptors() -> Vec<u32> {
    vec![]
}

#[cfg(not(target_os = "wasi"))]
fn preopens() -> Vec<(u32, String)> {
    vec![]
}
