//! What a sandbox may start, and what the host adds to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wardian::internals::Inside;
use wardian::{ErrorClass, Extension, ExtensionAnswer as Answer, ExtensionSpec, PythonPackage, Run, Sandbox};

use crate::support::{output, run, text};

async fn allowed(tools: &[&str]) -> Sandbox {
    Sandbox::builder().tool_allowlist(tools.iter().copied()).build().await.unwrap()
}

#[tokio::test]
async fn only_allowed_tools_start_whatever_starts_them() {
    let sandbox = allowed(&["bash", "sh", "ls", "cat", "xargs", "env", "find", "timeout"]).await;
    assert_eq!(
        output(&sandbox, "echo x > /tmp/f; cat /tmp/f; ls /tmp; bash -c 'cat /tmp/f'").await,
        "x\nf\nx\n"
    );
    let scripts = [
        "rm /tmp/f",
        "/bin/rm /tmp/f",
        "/bin/../bin/rm /tmp/f",
        "command rm /tmp/f",
        "exec rm /tmp/f",
        "(rm /tmp/f)",
        "bash -c 'rm /tmp/f'",
        "sh -c 'exec rm /tmp/f'",
        "env rm /tmp/f",
        "echo /tmp/f | xargs rm",
        "find /tmp/f -exec rm {} \\;",
        "timeout 5 rm /tmp/f",
        "ln -s /bin/rm /tmp/ls; /tmp/ls /tmp/f",
        "cd /bin; ./rm /tmp/f",
        "(exec -a rm ls /tmp/f)",
        "(exec -a tools ls rm /tmp/f)",
        "exec -a rm ls /tmp/f",
        "exec -a tools ls rm /tmp/f",
    ];
    for script in scripts {
        let result = run(&sandbox, script).await;
        let stderr = text(result.stderr);
        assert_eq!(result.error_class, Some(ErrorClass::CapabilityDenied), "{script}: {stderr}");
        assert!(stderr.contains("wardian: tool not allowed: "), "{script}: {stderr}");
        assert_eq!(output(&sandbox, "cat /tmp/f").await, "x\n", "{script}");
    }
    let direct = run(&sandbox, "rm /tmp/f").await;
    assert_eq!(direct.exit_code, 126);
    assert!(text(direct.stderr).ends_with("wardian: tool not allowed: rm\n"));
    let later = run(&sandbox, "rm /tmp/f; echo $?").await;
    assert_eq!((later.exit_code, text(later.stdout)), (0, "126\n".to_owned()), "the script goes on");
}

#[tokio::test]
async fn a_copy_or_a_program_of_ones_own_is_not_an_allowed_tool() {
    let sandbox = allowed(&["ls", "cp", "chmod", "cat"]).await;
    output(&sandbox, "cp /bin/ls /tmp/ls; cp /bin/ls /tmp/cat; chmod +x /tmp/ls /tmp/cat").await;
    for script in ["/tmp/ls", "/tmp/cat", "(PATH=/tmp; ls)"] {
        let result = run(&sandbox, script).await;
        assert_eq!(
            (result.exit_code, result.error_class),
            (126, Some(ErrorClass::CapabilityDenied)),
            "{script}"
        );
    }
    // A script is as good as its interpreter.
    output(&sandbox, "printf '#!/bin/cat\\nhi\\n' > /tmp/shown; printf '#!/bin/rm\\n' > /tmp/removed; chmod +x /tmp/shown /tmp/removed").await;
    assert_eq!(output(&sandbox, "/tmp/shown").await, "#!/bin/cat\nhi\n");
    assert_eq!(run(&sandbox, "/tmp/removed").await.exit_code, 126);
    assert_eq!(output(&sandbox, "cat /tmp/removed").await, "#!/bin/rm\n");
}

#[tokio::test]
async fn an_empty_allowlist_leaves_the_shell_itself() {
    let sandbox = allowed(&[]).await;
    assert_eq!(
        output(&sandbox, "for i in 1 2; do echo $i; done; [[ -d /tmp ]] && printf ok").await,
        "1\n2\nok"
    );
    assert_eq!(run(&sandbox, "ls").await.exit_code, 126);
    let fork = sandbox.fork().await.unwrap();
    assert_eq!(run(&fork, "ls").await.exit_code, 126, "a fork has the same rules");
}

fn greet() -> Extension {
    let spec = ExtensionSpec {
        usage: "greet [NAME]".into(),
        examples: vec!["greet world".into()],
        category: "social".into(),
        ..ExtensionSpec::new("greet", "Greets somebody")
    };
    Extension::function(spec, |call| async move {
        let name = call.args.first().cloned().unwrap_or_else(|| "nobody".into());
        if name == "fail" {
            return Answer::failure(7, "greet: no\n");
        }
        Answer::stdout(format!("hello {name} from {} ({}) {}\n", call.cwd, call.env["WHO"], call.stdin.len()))
    })
}

#[tokio::test]
async fn an_extension_is_a_command_like_any_other() {
    let sandbox = Sandbox::builder().env("WHO", "me").extension(greet()).build().await.unwrap();
    assert_eq!(output(&sandbox, "cd /tmp; greet you").await, "hello you from /tmp (me) 0\n");
    assert_eq!(
        output(&sandbox, "printf 12345 | WHO=other greet | tr a-z A-Z").await,
        "HELLO NOBODY FROM /TMP (OTHER) 5\n"
    );
    assert_eq!(
        output(&sandbox, "type -t greet; which greet; command -v greet").await,
        "file\n/usr/bin/greet\n/usr/bin/greet\n"
    );
    assert_eq!(
        output(&sandbox, "echo a b | xargs -n1 greet | wc -l; x=$(greet z); echo ${#x}").await,
        "2\n24\n"
    );
    let failed = run(&sandbox, "greet fail").await;
    assert_eq!((failed.exit_code, text(failed.stderr)), (7, "greet: no\n".to_owned()));
    assert_eq!(
        output(&sandbox, "greet x > /tmp/out; cat /tmp/out; greet y < /tmp/out | wc -l").await,
        "hello x from /tmp (me) 0\n1\n"
    );
    let fork = sandbox.fork().await.unwrap();
    assert_eq!(output(&fork, "greet fork").await, "hello fork from /tmp (me) 0\n");
}

#[tokio::test]
async fn extensions_describe_themselves() {
    let other =
        Extension::function(ExtensionSpec::new("other", "Does nothing"), |_| async { Answer::default() });
    let sandbox = Sandbox::builder().extension(greet()).extension(other).build().await.unwrap();
    let help = output(&sandbox, "greet --help").await;
    assert_eq!(
        help,
        "greet - Greets somebody\n\nUsage: greet [NAME]\nCategory: social\n\nExamples:\n  greet world\n"
    );
    assert_eq!(output(&sandbox, "extensions info greet").await, help);
    assert_eq!(output(&sandbox, "extensions list").await, "greet  Greets somebody\nother  Does nothing\n");
    assert_eq!(output(&sandbox, "extensions list --category social").await, "greet  Greets somebody\n");
    assert!(output(&sandbox, "extensions list --json").await.starts_with("[{\"category\":\"social\""));
    assert_eq!(run(&sandbox, "extensions info nobody").await.exit_code, 1);
    assert_eq!(run(&sandbox, "extensions frobnicate").await.exit_code, 2);
    let plain = Sandbox::builder().build().await.unwrap();
    assert_eq!(output(&plain, "extensions list").await, "");
}

#[tokio::test]
async fn an_extension_can_stream_both_ways() {
    let double = Extension::new(ExtensionSpec::new("double", "Doubles each piece"), |mut call| async move {
        loop {
            match call.stdin.read(64 * 1024).await {
                Ok(piece) if piece.is_empty() => return 0,
                Ok(piece) => {
                    if call.stdout.write_all(&[&piece[..], &piece[..]].concat()).await.is_err() {
                        return 1;
                    }
                }
                Err(_) => return 2,
            }
        }
    });
    let sandbox = Sandbox::builder().extension(double).build().await.unwrap();
    assert_eq!(output(&sandbox, "head -c 3000000 /dev/zero | double | wc -c").await, "6000000\n");
    assert_eq!(output(&sandbox, "{ echo a; sleep 0.05; echo b; } | double").await, "a\na\nb\nb\n");
    assert_eq!(output(&sandbox, "yes | double | head -2").await, "y\ny\n", "a reader that goes ends it");
}

#[tokio::test]
async fn an_extension_is_cancelled_with_its_command() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let hang = Extension::new(ExtensionSpec::new("hang", "Never ends"), move |_| {
        let flag = Flag(flag.clone());
        async move {
            let _flag = flag;
            std::future::pending().await
        }
    });
    let sandbox = Sandbox::builder().extension(hang).build().await.unwrap();
    let result = sandbox.run_with(Run::new("hang").timeout(Some(Duration::from_millis(100)))).await.unwrap();
    assert_eq!(result.exit_code, 124);
    while !dropped.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(output(&sandbox, "hang & kill $!; wait $!; echo $?").await, "143\n");
    assert_eq!(sandbox.machine().census().processes, 1);
}

#[tokio::test]
async fn an_extension_that_panics_is_a_failed_command() {
    let broken = Extension::new(ExtensionSpec::new("broken", "Panics"), |_| async { panic!("on purpose") });
    let sandbox = Sandbox::builder().extension(broken).build().await.unwrap();
    assert_eq!(run(&sandbox, "broken").await.exit_code, 134);
    assert_eq!(output(&sandbox, "echo on").await, "on\n");
}

#[tokio::test]
async fn extensions_obey_the_allowlist_and_names_must_make_sense() {
    let builder = || Sandbox::builder().env("WHO", "me").extension(greet());
    let without = builder().tool_allowlist(["ls"]).build().await.unwrap();
    assert_eq!(run(&without, "greet x").await.exit_code, 126);
    let with = builder().tool_allowlist(["greet"]).build().await.unwrap();
    assert_eq!(run(&with, "greet x").await.exit_code, 0);
    for name in ["", "a/b", "..", "-x", "a b", "ls", "nul\0"] {
        let extension = Extension::function(ExtensionSpec::new(name, ""), |_| async { Answer::default() });
        assert!(Sandbox::builder().extension(extension).build().await.is_err(), "{name:?}");
    }
    assert!(builder().extension(greet()).build().await.is_err(), "twice the same");
}

#[tokio::test]
async fn a_python_package_lies_where_python_finds_it() {
    let files = BTreeMap::from([("pack/__init__.py".to_owned(), "x = 1\n".to_owned())]);
    let package = PythonPackage { version: "1.2".into(), summary: "A pack".into(), files };
    let spec = ExtensionSpec { python_package: Some(package), ..ExtensionSpec::new("pack", "") };
    let sandbox = Sandbox::builder().extension(Extension::package(spec.clone())).build().await.unwrap();
    let listing = output(
        &sandbox,
        "cd /usr/lib/python3/site-packages; cat pack/__init__.py pack-1.2.dist-info/METADATA",
    )
    .await;
    assert_eq!(listing, "x = 1\nMetadata-Version: 2.1\nName: pack\nVersion: 1.2\nSummary: A pack\n");
    assert_eq!(run(&sandbox, "pack").await.exit_code, 127, "it has no command");
    let charged = "pack/__init__.py".len() + "x = 1\n".len();
    assert_eq!(sandbox.machine().tree().await.usage().bytes, charged as u64, "its files are charged");
    let mut escaping = spec;
    escaping.python_package.as_mut().unwrap().files = BTreeMap::from([("../../x".to_owned(), String::new())]);
    assert!(Sandbox::builder().extension(Extension::package(escaping)).build().await.is_err());
}

#[tokio::test]
async fn the_page_of_commands_has_those_of_the_path() {
    let page = include_str!("../../../../docs/commands.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: Vec<&str> = rows.map(|(name, _)| name).collect();
    let sandbox = Sandbox::builder().build().await.unwrap();
    let found = output(&sandbox, "IFS=:; ls -1 $PATH 2> /dev/null | grep -v -e : -e '^$' | sort -u").await;
    assert_eq!(found.lines().collect::<Vec<_>>(), documented);
}

/// The shell has advice for well-known programs that a sandbox does not have: none of them may exist.
#[tokio::test]
async fn programs_that_the_shell_has_advice_instead_of_do_not_exist() {
    let source = include_str!("../../../../guests/sh/src/exec/absent.rs");
    let table = source.split("#[cfg(test)]").next().unwrap().split_once("= [").unwrap().1;
    let strings = table.split('"').skip(1).step_by(2);
    // Names and advice in turn.
    let names: Vec<&str> =
        strings.step_by(2).flat_map(str::split_whitespace).filter(|name| *name != "\\").collect();
    assert!(names.len() > 150 && names.contains(&"sudo") && names.contains(&"ghc"), "{names:?}");
    let sandbox = Sandbox::builder().build().await.unwrap();
    let find = format!("for name in {}; do type -P $name; done; true", names.join(" "));
    assert_eq!(output(&sandbox, &find).await, "");
}
