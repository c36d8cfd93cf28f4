//! The JavaScript of Node's modules, in `lib/`, by name.

macro_rules! library {
    ($($name:literal)*) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("lib/", $name, ".js")))),*];
    };
}

library! {
    "_blob" "_clone" "_encoding" "_equal" "_errors" "_esm" "_events" "_fetch" "_fs_streams" "_globals"
    "_inspect" "_intl" "_json" "_lazy" "_loop" "_main" "_parse_args" "_rejections" "_stdio" "_test_runner"
    "_typescript" "_url" "assert" "assert-strict" "async_hooks" "boot" "buffer" "child_process" "console"
    "constants" "crypto" "dgram" "diagnostics_channel" "dns" "dns-promises" "events" "fs" "fs-promises"
    "http" "https" "module" "net" "os" "path" "path-posix" "path-win32" "perf_hooks" "process" "punycode"
    "querystring" "readline" "readline-promises" "stream" "stream-consumers" "stream-promises" "stream-web"
    "string_decoder" "test" "test-reporters" "timers" "timers-promises" "tls" "tty" "url" "util"
    "util-types" "v8" "vm" "worker_threads" "zlib"
}

/// The source of a file.
pub fn source(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, source)| *source)
}

/// The names of all files.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}
