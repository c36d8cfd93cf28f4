//! The interpreter that stays: what it answers, what it keeps, and what cannot harm it.

use std::time::Duration;

use wardian::{Error, ErrorClass, Limits, Python, PythonResult, Sandbox};

async fn sandbox_with(limits: Limits) -> Sandbox {
    let prepared = tokio::task::spawn_blocking(|| wardian::prepare(|_| ())).await.expect("no panic");
    prepared.expect("all programs load");
    let builder = Sandbox::builder().limits(limits).timeout(Some(Duration::from_secs(60)));
    builder.build().await.expect("a sandbox")
}

async fn sandbox() -> Sandbox {
    sandbox_with(Limits::default()).await
}

async fn python(sandbox: &Sandbox, code: &str) -> PythonResult {
    sandbox.python(code).await.expect("it runs")
}

/// The value of the last expression.
async fn value(sandbox: &Sandbox, code: &str) -> String {
    let result = python(sandbox, code).await;
    result.value.clone().unwrap_or_else(|| panic!("{code} has no value: {result:?}")).repr
}

#[tokio::test]
async fn state_lives_from_call_to_call() {
    let sandbox = sandbox().await;
    let first = python(&sandbox, "import math\nx = 20\ndef f(n): return n * 2\nprint('said')").await;
    assert_eq!((first.run.stdout.as_slice(), first.run.exit_code, first.value), (&b"said\n"[..], 0, None));
    assert_eq!(value(&sandbox, "f(x) + math.floor(2.5)").await, "42");
    assert_eq!(value(&sandbox, "_ + 1").await, "43");
    python(&sandbox, "file = open('/tmp/a', 'w'); file.write('one ')").await;
    python(&sandbox, "file.write('two'); file.close()").await;
    assert_eq!(sandbox.run("cat /tmp/a; cd /tmp; name=shell").await.unwrap().stdout, b"one two");
    assert_eq!(
        value(&sandbox, "import os; os.getcwd(), os.environ.get('name')").await,
        "('/home/user', None)"
    );
    assert_eq!(
        value(&sandbox, "import subprocess; subprocess.check_output('echo $((6*7))', shell=True)").await,
        "b'42\\n'"
    );
    assert_eq!(value(&sandbox, "from __future__ import annotations\n1").await, "1");
    assert_eq!(value(&sandbox, "def g(a: Nowhere): pass\ng.__annotations__").await, "{'a': 'Nowhere'}");
}

/// Text that is not Unicode, and numbers that are none, are told all the same.
#[tokio::test]
async fn what_json_cannot_say_is_no_success() {
    let sandbox = sandbox().await;
    let result = python(&sandbox, "raise Exception('half \\ud800')").await;
    let error = result.error.expect("it was raised");
    assert_eq!((result.run.exit_code, error.message.as_str()), (1, "half \\ud800"));
    let half = python(&sandbox, "class Half:\n    def __repr__(self): return '\\udc80'\nHalf()").await;
    assert_eq!(half.value.expect("it has one").repr, "\\udc80");
    let code = "class Odd:\n    def _repr_json_(self): return {'a': float('nan')}\nOdd()";
    let odd = python(&sandbox, code).await.value.expect("it has one");
    assert_eq!(odd.json, Some(serde_json::json!({ "a": null })));
    assert_eq!(python(&sandbox, "raise SystemExit(10**30)").await.run.exit_code, 255, "as CPython has it");
}

#[tokio::test]
async fn values_show_themselves_as_in_a_notebook() {
    let sandbox = sandbox().await;
    let code = "
class Shown:
    def __repr__(self): return 'shown'
    def _repr_html_(self): return '<b>shown</b>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_json_(self): return {'a': [1, None]}
display(Shown(), 7)
Shown()
";
    let result = python(&sandbox, code).await;
    let value = result.value.expect("a value");
    assert_eq!((value.repr.as_str(), value.html.as_deref()), ("shown", Some("<b>shown</b>")));
    assert_eq!(value.png.as_deref(), Some("iVBORw=="));
    assert_eq!(value.json.map(|json| json.to_string()).as_deref(), Some("{\"a\":[1,null]}"));
    let displayed: Vec<&str> = result.displays.iter().map(|shown| shown.repr.as_str()).collect();
    assert_eq!(displayed, ["shown", "7"]);
    assert_eq!(python(&sandbox, "None").await.value, None);
}

#[tokio::test]
async fn errors_are_those_of_cpython_without_wardians_frames() {
    let sandbox = sandbox().await;
    python(&sandbox, "def f(n):\n    return 1 // n").await;
    let result = python(&sandbox, "print('before')\nf(0)").await;
    assert_eq!((result.run.exit_code, result.run.stdout.as_slice()), (1, &b"before\n"[..]));
    let error = result.error.expect("an error");
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("ZeroDivisionError", "integer division or modulo by zero")
    );
    let expected = [
        "Traceback (most recent call last):",
        "  File \"<cell 2>\", line 2, in <module>",
        "    f(0)",
        "    ~^^^",
        "  File \"<cell 1>\", line 2, in f",
        "    return 1 // n",
        "           ~~^^~~",
        "ZeroDivisionError: integer division or modulo by zero",
    ];
    assert_eq!(error.traceback, expected);
    let error = python(&sandbox, "1 +").await.error.expect("an error");
    assert_eq!(error.name, "SyntaxError");
    assert_eq!(error.traceback[0], "  File \"<cell 3>\", line 1");
    let error = python(&sandbox, "import json; json.loads('{')").await.error.expect("an error");
    assert_eq!(error.name, "json.decoder.JSONDecodeError");
    for code in ["def f(): f()\nf()", "x = []\nfor _ in range(100000): x = [x]\nrepr(x)"] {
        assert_eq!(python(&sandbox, code).await.error.expect("an error").name, "RecursionError");
    }
    assert_eq!(value(&sandbox, "6 * 7").await, "42");
}

#[tokio::test]
async fn exit_answers_its_code_and_the_interpreter_lives_on() {
    let sandbox = sandbox().await;
    python(&sandbox, "kept = 1").await;
    for (code, exit) in [
        ("exit()", 0),
        ("exit(3)", 3),
        ("import sys; kept = 2; sys.exit(300)", 44),
        ("import os; kept = 3; os._exit(5)", 5),
    ] {
        let result = python(&sandbox, code).await;
        assert_eq!((result.run.exit_code, &result.error), (exit, &None), "{code}: {result:?}");
    }
    let said = python(&sandbox, "exit('why')").await.run;
    assert_eq!((said.exit_code, said.stderr.as_slice()), (1, &b"why\n"[..]));
    // os._exit ends the process: what it did in that call is gone with it.
    assert_eq!(value(&sandbox, "kept").await, "2");
}

#[tokio::test]
async fn contexts_share_files_and_nothing_else() {
    let sandbox = sandbox().await;
    let call = |code: &'static str, name: &'static str| sandbox.python_with(Python::new(code).context(name));
    call("x = 'a'; open('/tmp/shared', 'w').write('yes')", "a").await.unwrap();
    let other = call("open('/tmp/shared').read(), 'x' in globals()", "b").await.unwrap();
    assert_eq!(other.value.unwrap().repr, "('yes', False)");
    for name in ["", &"n".repeat(65)] {
        assert!(matches!(sandbox.python_with(Python::new("1").context(name)).await, Err(Error::Option(_))));
    }
    for number in 2..16 {
        sandbox.python_with(Python::new("1").context(number.to_string())).await.unwrap();
    }
    assert!(matches!(sandbox.python_with(Python::new("1").context("too many")).await, Err(Error::Option(_))));
}

#[tokio::test]
async fn forks_snapshots_and_archives_have_the_heap() {
    let sandbox = sandbox().await;
    python(&sandbox, "numbers = list(range(100_000)); name = 'original'").await;
    let snapshot = sandbox.snapshot().await.unwrap();
    let fork = sandbox.fork().await.unwrap();
    python(&fork, "name = 'fork'; numbers.append(1)").await;
    assert_eq!(value(&sandbox, "name, len(numbers)").await, "('original', 100000)");
    assert_eq!(value(&fork, "name, len(numbers)").await, "('fork', 100001)");
    python(&sandbox, "name = 'later'").await;
    sandbox.restore(&snapshot).await.unwrap();
    assert_eq!(value(&sandbox, "name").await, "'original'");
    let archive = fork.export().await.unwrap();
    let elsewhere = self::sandbox().await;
    python(&elsewhere, "name = 'lost'").await;
    elsewhere.import(archive).await.unwrap();
    assert_eq!(
        value(&elsewhere, "name, sum(numbers), __import__('json').dumps(1)").await,
        "('fork', 4999950001, '1')"
    );
}

/// Each never ends by itself, or never could.
const ENDLESS: &[&str] = &[
    "while True: pass",
    "10 ** 10 ** 8",
    "import re; re.match('(a+)+b', 'a' * 40)",
    "import time; time.sleep(1e9)",
    "class A:\n    def __del__(self):\n        while True: pass\nA()\nNone",
    "import signal, os\ndef f(*a):\n    while True: pass\nsignal.signal(signal.SIGUSR1, f)\nos.kill(os.getpid(), signal.SIGUSR1)",
    "class B:\n    def __repr__(self):\n        while True: pass\nB()",
    "import subprocess; subprocess.run(['sleep', '1000'])",
];

#[tokio::test]
async fn whatever_code_does_a_deadline_ends_it_and_the_state_before_is_there() {
    let sandbox = sandbox().await;
    python(&sandbox, "kept = 'kept'").await;
    for code in ENDLESS {
        let code = format!("kept = 'changed'\n{code}");
        let call = Python::new(code.as_str()).timeout(Some(Duration::from_millis(800)));
        let result = sandbox.python_with(call).await.expect("it runs");
        assert_eq!(
            (result.run.exit_code, result.run.error_class),
            (124, Some(ErrorClass::Timeout)),
            "{code}"
        );
        assert_eq!(value(&sandbox, "kept").await, "'kept'", "after {code}");
    }
}

#[tokio::test]
async fn memory_that_is_not_there_is_an_error_that_the_session_survives() {
    let sandbox = sandbox_with(Limits { memory_bytes: 128 << 20, ..Limits::default() }).await;
    python(&sandbox, "kept = 'kept'").await;
    // More than 32 bits can count.
    assert_eq!(python(&sandbox, "[0] * 10**12").await.error.expect("an error").name, "OverflowError");
    for code in
        ["[0] * 10**8", "bytearray(2**30)", "'x' * 10**9", "x = []\nwhile True: x.append(bytearray(1 << 20))"]
    {
        let result = python(&sandbox, code).await;
        assert_eq!(
            result.error.as_ref().map(|error| error.name.as_str()),
            Some("MemoryError"),
            "{code}: {result:?}"
        );
        assert_eq!(value(&sandbox, "x = None; kept").await, "'kept'", "after {code}");
    }
}

#[tokio::test]
async fn an_interpreter_that_took_all_memory_leaves_some_for_other_commands() {
    let sandbox = sandbox_with(Limits { memory_bytes: 512 << 20, ..Limits::default() }).await;
    // In pieces of all sizes, so that it ends as close to the limit as it can.
    let code = "y = []\nsize = 1 << 24\nwhile size > 200_000:\n  try: y.append('z' * size + str(len(y)))\n  except MemoryError: size //= 2\nlen(y) > 20";
    assert_eq!(value(&sandbox, code).await, "True");
    let result = sandbox.run("echo hi | cat; python3 -c 'print(1)'").await.expect("it runs");
    assert_eq!(result.stdout, b"hi\n1\n", "{result:?}");
    assert_eq!(value(&sandbox, "del y\n2").await, "2");
}

#[tokio::test]
async fn long_results_are_cut() {
    let sandbox = sandbox_with(Limits { stdout_bytes: 10_000, ..Limits::default() }).await;
    let result = python(&sandbox, "'x' * 10**7").await;
    assert!(result.truncated && result.value.expect("a value").repr.len() < 10_000);
    let result = python(&sandbox, "raise ValueError('\\u00e9' * 10**6)").await;
    assert!(result.truncated && result.error.expect("an error").message.len() < 30_000);
    // An interpreter whose answer is not what it should be hurts nobody.
    python(&sandbox, "import sys, gc\nfor d in gc.get_objects(): pass").await;
    assert_eq!(value(&sandbox, "1").await, "1");
}

#[tokio::test]
async fn image_pages_are_charged_when_they_are_written() {
    let sandbox = sandbox_with(Limits { memory_bytes: 64 << 20, ..Limits::default() }).await;
    // Each has an image of some twenty megabytes, of which it writes few.
    let four = "for i in 1 2 3 4 5 6; do python3 -c 'import time; time.sleep(0.5); print(1)' & done; wait";
    let result = sandbox.run(four).await.unwrap();
    assert_eq!((result.stdout.as_slice(), result.limit), (&b"1\n1\n1\n1\n1\n1\n"[..], None), "{result:?}");
    // Looking for garbage in the image writes to most of it.
    let small = sandbox_with(Limits { memory_bytes: 4 << 20, ..Limits::default() }).await;
    let all = "import gc; gc.unfreeze(); gc.collect(); import time; time.sleep(0.1); print('lives')";
    let result = python(&small, all).await;
    assert_eq!(
        (result.run.stdout.as_slice(), result.run.limit),
        (&b""[..], Some(wardian::Limit::MemoryBytes)),
        "{result:?}"
    );
    assert_eq!(result.run.error_class, Some(ErrorClass::LimitExceeded));
    assert_eq!(value(&small, "6 * 7").await, "42");
    let result = small.run(format!("python3 -c \"{all}\"")).await.unwrap();
    assert_eq!((result.exit_code, result.limit), (137, Some(wardian::Limit::MemoryBytes)), "{result:?}");
}

/// The processes of a sandbox may write 1 GiB together, unless it was given another limit.
#[tokio::test]
async fn four_processes_with_pandas_fit_and_many_that_write_much_do_not() {
    let sandbox = sandbox().await;
    // Each says that it is full, or that it cannot be; those that are stay until all have said something.
    let all = |count: usize, code: &str| {
        format!(
            "for ((i = 0; i < {count}; i++)); do python3 -c '{code}' >> said 2>> said & done
            until [ \"$(grep -c -E '^(full|MemoryError)' said)\" = {count} ]; do sleep 0.05; done
            touch go; wait; grep -o -E '^(full|MemoryError)' said | sort | uniq -c; rm said go"
        )
    };
    let stays = "print(\"full\", flush=True)\nwhile not os.path.exists(\"go\"): time.sleep(0.05)";
    let pandas = "import os, time, pandas\nframe = pandas.DataFrame({\"a\": range(200_000)})\nframe[\"b\"] = frame.a * 2.5";
    let result = sandbox.run(all(4, &format!("{pandas}\n{stays}"))).await.unwrap();
    assert_eq!((result.stdout.trim_ascii(), result.limit), (&b"4 full"[..], None), "{result:?}");
    // 24 times 60 MB do not fit, 12 times do.
    let writes = format!("import os, time\nwritten = b\"x\" * 60_000_000\n{stays}");
    let result = sandbox.run(all(24, &writes)).await.unwrap();
    let said = String::from_utf8_lossy(&result.stdout).into_owned();
    let count = |word: &str| {
        let line = said.lines().find_map(|line| line.strip_suffix(word));
        line.and_then(|number| number.trim().parse::<usize>().ok()).unwrap_or(0)
    };
    let (full, refused) = (count("full"), count("MemoryError"));
    assert!((12..18).contains(&full) && full + refused == 24, "{result:?}");
    assert_eq!(result.limit, Some(wardian::Limit::MemoryBytes), "{result:?}");
    // What they had is free again.
    let result = sandbox.run(all(12, &writes)).await.unwrap();
    assert_eq!((result.stdout.trim_ascii(), result.limit), (&b"12 full"[..], None), "{result:?}");
}

/// The shell's runs and the interpreter's calls of one sandbox share the files, and take turns.
#[tokio::test]
async fn runs_and_calls_of_one_sandbox_follow_each_other() {
    let sandbox = sandbox().await;
    python(&sandbox, "import time").await;
    let turn = async |number: usize| {
        let (begin, end) = (format!("begin {number}"), format!("end {number}"));
        if number.is_multiple_of(2) {
            let command = format!("echo {begin} >> turns; sleep 0.2; echo {end} >> turns");
            assert_eq!(sandbox.run(command).await.expect("it runs").exit_code, 0);
        } else {
            let code = format!(
                "with open('turns', 'a', buffering=1) as f: print('{begin}', file=f), time.sleep(0.2), print('{end}', file=f)"
            );
            let result = python(&sandbox, &code).await;
            assert!(result.is_ok(), "{result:?}");
        }
    };
    tokio::join!(turn(0), turn(1), turn(2), turn(3), turn(4), turn(5));
    let turns = sandbox.run("cat turns").await.expect("it runs").stdout;
    let turns = String::from_utf8_lossy(&turns).into_owned();
    let lines: Vec<&str> = turns.lines().collect();
    assert_eq!(lines.len(), 12, "{turns}");
    for turn in lines.chunks(2) {
        assert_eq!(turn[0].strip_prefix("begin "), turn[1].strip_prefix("end "), "{turns}");
    }
}

/// What nobody seeded differs between forks; what was seeded goes on.
#[tokio::test]
async fn forks_draw_numbers_of_their_own_unless_they_were_seeded() {
    let sandbox = sandbox().await;
    python(
        &sandbox,
        "import random\nown = random.Random()\nseeded = random.Random(7)\nkept = random.Random()",
    )
    .await;
    python(&sandbox, "kept.setstate(kept.getstate()); drawn = random.random(), own.random()").await;
    let (one, two) = (sandbox.fork().await.expect("a fork"), sandbox.fork().await.expect("a fork"));
    for code in ["random.random()", "own.random()"] {
        let drawn = [value(&sandbox, code).await, value(&one, code).await, value(&two, code).await];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "{code}: {drawn:?}");
    }
    for code in ["seeded.random()", "kept.random()"] {
        assert_eq!(value(&one, code).await, value(&two, code).await, "{code}");
    }
    python(&one, "random.seed(3)").await;
    let three = one.fork().await.expect("a fork");
    assert_eq!(value(&one, "random.random()").await, value(&three, "random.random()").await);
}

/// Looking for a module of the image and importing it afterwards gives the module, with its parts.
#[tokio::test]
async fn modules_found_by_find_spec_can_be_imported() {
    let sandbox = sandbox().await;
    let looks = "import importlib.util\nfound = [importlib.util.find_spec(name) for name in ('numpy', 'pandas', 'asyncio', 'numpy')]";
    python(&sandbox, looks).await;
    let code = "import numpy, pandas, asyncio
float(numpy.linalg.det(numpy.eye(2))), len(numpy.fft.fft([1, 2])), int(pandas.Series([1, 2]).sum()), asyncio.base_events.__name__";
    assert_eq!(value(&sandbox, code).await, "(1.0, 2, 3, 'asyncio.base_events')");
    let hook = "
import sys, importlib.machinery
class Hook:
    @staticmethod
    def find_spec(name, path=None, target=None):
        importlib.machinery.PathFinder.find_spec(name, path, target)
sys.meta_path.insert(0, Hook)
import numpy.linalg, pandas, asyncio, numpy.random
print(numpy.linalg.norm([3, 4]), numpy.ma.masked, pandas.DataFrame({'a': [1]}).a[0], asyncio.run(asyncio.sleep(0, 1)))
";
    assert_eq!(value(&sandbox, &format!("{hook}\n1")).await, "1");
    let command = format!("python3 - <<'E'\n{hook}E\n");
    assert_eq!(sandbox.run(command).await.unwrap().stdout, b"5.0 -- 1 1\n");
    let command = "python3 -c 'import importlib.util as u; u.find_spec(\"numpy\"); import numpy; print(numpy.linalg.__name__)'";
    assert_eq!(sandbox.run(command).await.unwrap().stdout, b"numpy.linalg\n");
}

#[tokio::test]
async fn the_time_zone_of_the_sandbox_is_the_interpreters() {
    let builder = Sandbox::builder().env("TZ", "Europe/Berlin").timeout(Some(Duration::from_secs(60)));
    let sandbox = builder.build().await.expect("a sandbox");
    let code = "import time; time.tzname, time.timezone";
    assert_eq!(value(&sandbox, code).await, "(('CET', 'CEST'), -3600)");
    let command =
        "python3 -c 'import time; print(time.tzname)'; TZ=UTC python3 -c 'import time; print(time.tzname)'";
    assert_eq!(sandbox.run(command).await.unwrap().stdout, b"('CET', 'CEST')\n('UTC', 'UTC')\n");
}

/// What `zlib.adler32` says.
fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

/// At rest, only what a call can have written is looked at. Calls that write much, little and nothing follow each other; the state
/// must be exactly what they left, whether the next call goes on in the same instance, in a copy, or after one that was killed.
#[tokio::test]
async fn exactly_what_a_call_wrote_is_there_afterwards() {
    const SIZE: usize = 4 << 20;
    let sandbox = sandbox().await;
    python(&sandbox, &format!("import os, zlib\nheap = bytearray({SIZE})")).await;
    let mut heap = vec![0_u8; SIZE];
    let mut seed = 7_usize;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..60 {
        let writes = [0, 1, 1, 40, 400][random(5)];
        let places: Vec<(usize, u8)> = (0..writes).map(|_| (random(SIZE), random(256) as u8)).collect();
        let code = format!("for at, byte in {places:?}: heap[at] = byte");
        if round % 7 == 6 {
            let killed = python(&sandbox, &format!("{code}\nos._exit(9)")).await;
            assert_eq!(killed.run.exit_code, 9);
        } else {
            assert!(python(&sandbox, &code).await.is_ok());
            places.iter().for_each(|(at, byte)| heap[*at] = *byte);
        }
        let expected = adler32(&heap).to_string();
        if round % 5 == 4 {
            let fork = sandbox.fork().await.expect("a fork");
            assert_eq!(value(&fork, "zlib.adler32(heap)").await, expected, "a fork after round {round}");
        }
        if random(2) == 0 {
            assert_eq!(value(&sandbox, "zlib.adler32(heap)").await, expected, "round {round}");
        }
    }
}

/// Forks of one state run in instances that earlier forks have used: each has the state, its own changes and nothing of the others.
#[tokio::test]
async fn forks_that_follow_each_other_have_nothing_of_the_earlier_ones() {
    let sandbox = sandbox().await;
    python(&sandbox, "kept = [str(number) * 3 for number in range(20_000)]\nmark = 'none'").await;
    assert_eq!(value(&sandbox, "len(kept)").await, "20000");
    let mut before: Vec<(Sandbox, usize)> = Vec::new();
    for round in 0..40 {
        let fork = sandbox.fork().await.expect("a fork");
        let secret = format!("'-'.join(['sec', 'ret', 'of', '{round}']) * 50");
        let code = format!("kept[{round}::97] = [{secret}] * len(kept[{round}::97]); mark + str(len(kept))");
        assert_eq!(value(&fork, &code).await, "'none20000'", "round {round}");
        let foreign = format!("sum('sec-ret' in each and not each.endswith('of-{round}') for each in kept)");
        assert_eq!(value(&fork, &foreign).await, "0", "round {round}");
        before.push((fork, round));
        if before.len() > 3 {
            // Its instance is free for the next.
            let (old, round) = before.remove(0);
            let own = format!("sum(each.endswith('of-{round}') for each in kept) == len(kept[{round}::97])");
            assert_eq!(value(&old, &own).await, "True", "round {round}");
            old.destroy().await;
        }
    }
    assert_eq!(value(&sandbox, "sum('sec-ret' in each for each in kept)").await, "0");
}

/// An interpreter that has used up its memory may fail to say so. That is no success, and costs it nothing.
#[tokio::test]
async fn a_call_that_cannot_be_answered_leaves_the_interpreter_as_it_was() {
    let sandbox = sandbox_with(Limits { memory_bytes: 64 << 20, ..Limits::default() }).await;
    python(&sandbox, "y = 41\nfull = []").await;
    let error =
        python(&sandbox, "while True: full.append(bytearray(1 << 20))").await.error.expect("it is full");
    assert_eq!(error.name, "MemoryError");
    for round in 0..8 {
        let result = python(&sandbox, "chain = []\nwhile True: chain = [chain]").await;
        assert!(result.run.exit_code != 0 || result.error.is_some(), "round {round}: {result:?}");
        let next = python(&sandbox, "y + 1").await;
        let is_answer = next.value.as_ref().is_some_and(|value| value.repr == "42");
        assert!(is_answer || next.run.exit_code != 0, "round {round}: {next:?}");
    }
    let freed = python(&sandbox, "chain = None; full.clear()").await;
    assert!(freed.is_ok(), "{freed:?}");
    assert_eq!(value(&sandbox, "y + 1").await, "42");
}
