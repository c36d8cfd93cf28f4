//! Python: CPython itself, as a command of the sandbox.

use std::time::Duration;

use wardian::{ErrorClass, Limits, Run, Sandbox};

use super::cases;

#[tokio::test]
async fn every_recorded_case_is_as_cpython_has_it() {
    let missing = &[];
    cases::agree("guests/python/tests/cases", missing, 100).await;
}

async fn sandbox() -> Sandbox {
    tokio::task::spawn_blocking(|| wardian::prepare(|_| ()))
        .await
        .expect("no panic")
        .expect("all programs load");
    Sandbox::builder().timeout(Some(Duration::from_secs(60))).build().await.expect("a sandbox")
}

async fn python(sandbox: &Sandbox, code: &str) -> String {
    let script = format!("python3 - 2>&1 <<'END_OF_CODE'\n{code}\nEND_OF_CODE\n");
    let result = sandbox.run(script.as_str()).await.expect("it runs");
    String::from_utf8_lossy(&result.stdout).into_owned()
}

/// Each never ends by itself.
const ENDLESS: &[&str] = &[
    "while True: pass",
    "10 ** 10 ** 8",
    "import re; re.match('(a+)+b', 'a' * 40)",
    "import time; time.sleep(1e9)",
    "class A:\n    def __del__(self):\n        while True: pass\nA()",
    "import signal, os\ndef f(*a):\n    while True: pass\nsignal.signal(signal.SIGUSR1, f)\nos.kill(os.getpid(), signal.SIGUSR1)",
    "import threading; threading.Lock().acquire() and threading.Event().wait()",
    "import subprocess; subprocess.run(['sleep', '1000'])",
    "import atexit\n@atexit.register\ndef f():\n    while True: pass",
    "input()\nwhile True: x = [0] * 1000",
];

#[tokio::test]
async fn whatever_python_does_a_deadline_ends_it_and_the_next_command_works() {
    let sandbox = sandbox().await;
    for code in ENDLESS {
        let run = Run::new(format!("cat > /tmp/a.py <<'E'\n{code}\nE\nyes | python3 /tmp/a.py"));
        let result = sandbox.run_with(run.timeout(Some(Duration::from_millis(800)))).await.expect("it runs");
        assert_eq!(result.error_class, Some(ErrorClass::Timeout), "{code}: {result:?}");
        assert_eq!(python(&sandbox, "print(6 * 7)").await, "42\n", "after {code}");
    }
}

#[tokio::test]
async fn memory_that_is_not_there_is_a_memory_error_that_can_be_survived() {
    let limits = Limits { memory_bytes: 128 << 20, ..Limits::default() };
    tokio::task::spawn_blocking(|| wardian::prepare(|_| ())).await.expect("no panic").expect("all load");
    let sandbox = Sandbox::builder().limits(limits).build().await.expect("a sandbox");
    let code = "
for make in (lambda: bytearray(2**30), lambda: [0] * 10**8, lambda: 'x' * 10**9, lambda: 1 << 10**10):
    try: make(); print('?')
    except (MemoryError, OverflowError): print('refused')
kept = []
try:
    while True: kept.append(bytearray(1 << 20))
except MemoryError: print(50 < len(kept) < 128)
del kept
print(len(bytearray(50 << 20)))";
    assert_eq!(python(&sandbox, code).await, "refused\nrefused\nrefused\nrefused\nTrue\n52428800\n");
}

#[tokio::test]
async fn missing_features_are_reported() {
    let code = "
import os, threading, concurrent.futures, asyncio
for call in (os.fork, threading.Thread(target=print).start):
    try: call(); print('?')
    except (OSError, RuntimeError) as e: print(e)
with concurrent.futures.ThreadPoolExecutor() as pool: print(list(pool.map(abs, [-1, 2])), pool.submit(int, 'x').exception())
print(asyncio.run(asyncio.to_thread(pow, 2, 5)))
import multiprocessing as mp
for call in (lambda: mp.Value('i', 1), lambda: mp.Array('i', 2), lambda: mp.Barrier(2), mp.Manager, lambda: mp.get_context('forkserver')):
    try: call(); print('?')
    except (NotImplementedError, ValueError) as e: print(e)
try: import multiprocessing.shared_memory
except ImportError as e: print(e)";
    let expected = "[Errno 38] os.fork() cannot work in WebAssembly; use subprocess or multiprocessing\n\
        can't start new thread: a process has one here\n\
        [1, 2] invalid literal for int() with base 10: 'x'\n32\n\
        multiprocessing.Value needs memory that processes share, and there is none here: send values through a Queue or a Pipe\n\
        multiprocessing.Array needs memory that processes share, and there is none here: send values through a Queue or a Pipe\n\
        multiprocessing.Barrier needs memory that processes share, and there is none here: send values through a Queue or a Pipe\n\
        the server of a multiprocessing manager needs threads, and a process has one here: send values through a Queue or a Pipe\n\
        forkserver start method not available: the server would call os.fork(), which cannot work here; use 'fork' or 'spawn'\n\
        No module named '_posixshmem'\n";
    assert_eq!(python(&sandbox().await, code).await, expected);
}

#[tokio::test]
async fn the_standard_library_is_whole_and_not_writable() {
    let code = "
import importlib, pkgutil, sys, zoneinfo, datetime, site
# What a machine without a screen or code at run time has not either.
without = {'_tkinter', '_ctypes', '_curses', '_dbm', '_gdbm', 'msvcrt', '_winapi', 'winreg', '_overlapped', '_scproxy', 'readline', '_posixshmem'}
for module in pkgutil.iter_modules(['/usr/lib/python3.13']):
    if module.name in ('antigravity', 'this', '__hello__', '__phello__'): continue
    try: importlib.import_module(module.name)
    except ModuleNotFoundError as e:
        if e.name not in without: print(module.name, e)
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat())
try: open('/usr/lib/python3.13/os.py', 'a')
except PermissionError as e: print(e)";
    let expected = "2024-07-01T00:00:00+02:00\n[Errno 13] Permission denied: '/usr/lib/python3.13/os.py'\n";
    assert_eq!(python(&sandbox().await, code).await, expected);
}

#[tokio::test]
async fn its_web_server_serves_curl_until_it_is_killed() {
    let script = "mkdir site; echo hello > site/a.txt
        python3 -m http.server 8123 --bind 127.0.0.1 --directory site > log 2>&1 &
        until curl -sf http://127.0.0.1:8123/a.txt; do sleep 0.05; done
        curl -s http://localhost:8123/ | grep '<li>'
        curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:8123/b.txt
        curl -sI http://127.0.0.1:8123/a.txt | grep -i -E '^(HTTP|Content)' | tr -d '\\r'
        kill $!; wait $!; echo $?
        # Its end may reset one more connection.
        until curl -s http://127.0.0.1:8123/; [ $? = 7 ]; do sleep 0.05; done; echo refused
        sed 's/\\[.*\\]/[when]/' log";
    let expected = "hello\n<li><a href=\"a.txt\">a.txt</a></li>\n404\n\
        HTTP/1.0 200 OK\nContent-type: text/plain\nContent-Length: 6\n143\nrefused\n\
        127.0.0.1 - - [when] \"GET /a.txt HTTP/1.1\" 200 -\n\
        127.0.0.1 - - [when] \"GET / HTTP/1.1\" 200 -\n\
        127.0.0.1 - - [when] code 404, message File not found\n\
        127.0.0.1 - - [when] \"GET /b.txt HTTP/1.1\" 404 -\n\
        127.0.0.1 - - [when] \"HEAD /a.txt HTTP/1.1\" 200 -\n";
    let result = sandbox().await.run(script).await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&result.stdout), expected);
}

#[tokio::test]
async fn a_frame_of_the_library_shows_its_source() {
    let result =
        sandbox().await.run("python3 -c 'import json; json.loads(\"[\")' 2>&1").await.expect("it runs");
    let text = String::from_utf8_lossy(&result.stdout);
    assert!(text.contains("File \"/usr/lib/python3.13/json/decoder.py\", line "), "{text}");
    assert!(text.contains("obj, end = self.raw_decode(s, idx=_w(s, 0).end())"), "{text}");
}

#[tokio::test]
async fn random_numbers_differ_from_process_to_process() {
    let code = "import random, uuid, secrets, os, tempfile
print(random.random(), uuid.uuid4(), secrets.token_hex(8), os.urandom(4), next(tempfile._get_candidate_names()))";
    let sandbox = sandbox().await;
    let (one, two) = (python(&sandbox, code).await, python(&sandbox, code).await);
    for (one, two) in one.split_whitespace().zip(two.split_whitespace()) {
        assert_ne!(one, two);
    }
    // The hash seed belongs to the image, unless one is asked for.
    let hashes = "h='print(hash(\"a\"))'; python3 -c \"$h\"; python3 -c \"$h\"; PYTHONHASHSEED=0 python3 -c \"$h\"; python3 -I -c \"$h\"";
    let hashes = sandbox.run(hashes).await.expect("it runs").stdout;
    let hashes = String::from_utf8_lossy(&hashes).into_owned();
    let hashes: Vec<&str> = hashes.lines().collect();
    assert!(hashes[0] == hashes[1] && hashes[2] != hashes[0] && hashes[3] != hashes[0], "{hashes:?}");
}

/// With the vectors of RFC 6070 and RFC 7914, since CPython without OpenSSL has neither.
#[tokio::test]
async fn keys_are_derived_as_the_standards_say() {
    let code = "
import hashlib
print(hashlib.pbkdf2_hmac('sha1', b'password', b'salt', 4096).hex())
print(hashlib.pbkdf2_hmac('sha256', b'passwd', b'salt', 1, 64).hex()[:32])
print(hashlib.scrypt(b'', salt=b'', n=16, r=1, p=1, dklen=64).hex()[:32])
print(hashlib.scrypt(b'password', salt=b'NaCl', n=1024, r=8, p=16, dklen=64).hex()[:32])
for call in (lambda: hashlib.scrypt(b'', salt=b'', n=3, r=1, p=1), lambda: hashlib.scrypt(b'', salt=b'', n=1 << 20, r=8, p=1), lambda: hashlib.pbkdf2_hmac('sha1', b'', b'', 0)):
    try: call(); print('?')
    except ValueError as e: print(e)";
    let expected = "4b007901b765489abead49d926f721d065a429c1\n55ac046e56e3089fec1691c22544b605\n\
        77d6576238657b203b19ca42c18a0497\nfdbabe1c9d3472007856e7190d01e9fe\n\
        n must be a power of 2.\nInvalid parameter combination for n, r, p, maxmem.\n\
        iteration value must be greater than 0.\n";
    assert_eq!(python(&sandbox().await, code).await, expected);
}
