//! What curl says about itself.

const HELP: &str = "Usage: curl [options...] <url>
 -d, --data <data>          HTTP POST data
 -f, --fail                 Fail fast with no output on HTTP errors
 -h, --help                 Get help for commands
 -i, --include              Include protocol response headers in the output
 -o, --output <file>        Write to file instead of stdout
 -O, --remote-name          Write output to a file named as the remote file
 -s, --silent               Silent mode
 -T, --upload-file <file>   Transfer local FILE to destination
 -u, --user <user:password> Server user and password
 -A, --user-agent <name>    Send User-Agent <name> to server
 -v, --verbose              Make the operation more talkative
 -V, --version              Show version number and quit

Other options of curl 7.88 for http, https and file work too; one that does
not says why. HTTPS works through the sandbox's gateway.
";

fn print(text: &str) -> i32 {
    match wardian_abi::write_all(1, text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => 23,
    }
}

pub fn help() -> i32 {
    print(HELP)
}

pub fn version() -> i32 {
    print(&format!(
        "curl 7.88.1 (wasm32-wasip1) {}\nRelease-Date: 2023-02-20\nProtocols: file http https\n\
         Features: IPv6 Largefile libz SSL UnixSockets\n",
        super::LIBRARY
    ))
}
