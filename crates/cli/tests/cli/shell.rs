//! `wardian shell`, typed at: a real terminal (tmux's), real keys, and what a person would see.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::tmux::{PATIENCE, Tmux, state};

#[test]
fn type_ahead_is_not_lost() {
    let tmux = Tmux::start(state(), "");
    tmux.line("read -r first; sleep 0.5");
    // One line for the command, one for the shell, and the beginning of another.
    for text in ["for the command", "echo \"$first, then this\""] {
        tmux.command(&["send-keys", "-l", text]);
        tmux.keys(&["Enter"]);
    }
    tmux.command(&["send-keys", "-l", "echo begun"]);
    tmux.wait_for("for the command, then this");
    tmux.wait_for_last("user@wardian:~$ echo begun");
    tmux.keys(&["Enter"]);
    tmux.wait_for("begun");
}

/// On a machine that has compiled nothing yet.
#[test]
fn type_ahead_while_a_program_is_compiled_is_echoed_once() {
    let state = state();
    let cache = format!("WARDIAN_CACHE_DIR={}/cache", state.path().display());
    let tmux = Tmux::start_with(state, &cache, "");
    tmux.line("jq -n '1 + 1'");
    tmux.command(&["send-keys", "-l", "echo typed ahead"]);
    tmux.keys(&["Enter"]);
    tmux.wait_for("typed ahead");
    let screen = tmux.screen();
    assert!(screen.lines().any(|line| line.trim_end() == "2"), "{screen}");
    assert_eq!(screen.matches("echo typed ahead").count(), 1, "{screen}");
}

#[test]
fn commands_are_edited_completed_and_run() {
    let tmux = Tmux::start(state(), "");
    tmux.line("echo hello | tr a-z A-Z");
    tmux.wait_for("HELLO");
    // A line is edited before it is run.
    tmux.command(&["send-keys", "-l", "ecoh one two"]);
    tmux.keys(&["Home", "Right", "Right", "Delete", "Delete"]);
    tmux.command(&["send-keys", "-l", "ho"]);
    tmux.keys(&["End", "C-w"]);
    tmux.wait_for_last("user@wardian:~$ echo one");
    tmux.keys(&["Enter"]);
    tmux.wait_for("one");
    // Files, commands and variables complete.
    tmux.line("mkdir plants; touch plants/fern.txt 'plants/with blank'");
    tmux.wait_for_last("user@wardian:~$");
    tmux.command(&["send-keys", "-l", "echo pl"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last("user@wardian:~$ echo plants/");
    tmux.command(&["send-keys", "-l", "f"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last("user@wardian:~$ echo plants/fern.txt");
    tmux.command(&["send-keys", "-l", "plants/w"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last(r"user@wardian:~$ echo plants/fern.txt plants/with\ blank");
    tmux.keys(&["Enter"]);
    tmux.wait_for("plants/fern.txt plants/with blank");
    tmux.command(&["send-keys", "-l", "basena"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last("user@wardian:~$ basename");
    tmux.command(&["send-keys", "-l", "$HOSTN"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last("user@wardian:~$ basename $HOSTNAME");
    tmux.keys(&["Enter"]);
    tmux.wait_for("wardian");
    // What the user said of a command of their own.
    tmux.line("_d() { COMPREPLY=( $(compgen -W 'start stop' -- \"$2\") ); }");
    tmux.line("complete -F _d service");
    tmux.command(&["send-keys", "-l", "service sto"]);
    tmux.keys(&["Tab"]);
    tmux.wait_for_last("user@wardian:~$ service stop");
    tmux.keys(&["C-u"]);
    tmux.leave();
}

#[test]
fn ctrl_c_ends_the_command_and_not_the_shell() {
    let tmux = Tmux::start(state(), "");
    tmux.line("trap 'echo ended' USR1; sleep 1000");
    // Nothing on the screen tells that a command runs: press until it has ended.
    let interrupt = |done: &str| {
        let start = Instant::now();
        while tmux.screen().lines().last().is_none_or(|last| last.trim_end() != done) {
            assert!(start.elapsed() < PATIENCE, "not interrupted:\n{}", tmux.screen());
            tmux.keys(&["C-c"]);
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    interrupt("user@wardian:~$");
    tmux.line("false; sleep 1000; echo not reached");
    interrupt("user@wardian:~$");
    tmux.line("while :; do :; done");
    interrupt("user@wardian:~$");
    tmux.line("cat | cat");
    interrupt("user@wardian:~$");
    tmux.line("echo 'not whole");
    tmux.wait_for_last(">");
    interrupt("user@wardian:~$");
    tmux.line("echo the same shell: $(trap)");
    tmux.wait_for("the same shell: trap -- 'echo ended' SIGUSR1");
    assert!(!tmux.screen().lines().any(|line| line == "not reached"), "{}", tmux.screen());
    tmux.leave();
}

#[test]
fn jobs_are_suspended_and_continued() {
    let tmux = Tmux::start(state(), "");
    tmux.line("cat > /tmp/out");
    let start = Instant::now();
    while !tmux.screen().contains("Stopped") {
        assert!(start.elapsed() < PATIENCE, "not stopped:\n{}", tmux.screen());
        tmux.keys(&["C-z"]);
        std::thread::sleep(Duration::from_millis(300));
    }
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("jobs");
    tmux.wait_until("the job", |screen| {
        screen.lines().filter(|line| line.contains("Stopped") && line.contains("cat > /tmp/out")).count() == 2
    });
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("fg");
    tmux.wait_for_last("cat > /tmp/out");
    tmux.keys(&["typed to cat", "Enter", "C-d"]);
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("cat /tmp/out");
    tmux.wait_until("the output", |screen| {
        screen.lines().filter(|line| *line == "typed to cat").count() == 2
    });
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("sleep 0.1 & wait; echo waited");
    tmux.wait_for("waited");
    tmux.leave();
}

#[test]
fn several_lines_the_terminal_and_the_window() {
    let tmux = Tmux::start(state(), "--env GREETING=hi");
    tmux.line("for i in 1 2; do");
    tmux.wait_for_last(">");
    tmux.line("echo $GREETING $i");
    tmux.wait_for_last(">");
    tmux.line("done");
    tmux.wait_for("hi 2");
    tmux.line("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo three of them at $(tty)");
    tmux.wait_for("three of them at /dev/tty");
    tmux.line("echo $LINES by $COLUMNS");
    tmux.wait_for("24 by 80");
    tmux.command(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.wait_until("the new size", |_| {
        tmux.wait_for_last("user@wardian:~$");
        tmux.line("echo now $LINES by $COLUMNS");
        tmux.wait_for_last("user@wardian:~$");
        tmux.screen().lines().any(|line| line == "now 30 by 100")
    });
    tmux.line("read -p 'name? ' name; echo \"<$name>\"");
    tmux.wait_for_last("name?");
    tmux.keys(&["F", "e", "x", "BSpace", "r", "n", "Enter"]);
    tmux.wait_for("<Fern>");
    tmux.line("exit 7");
    tmux.wait_for("left with 7");
}

/// Sends text as a terminal does when it is pasted: all at once.
fn paste(tmux: &Tmux, text: &str) {
    tmux.command(&["set-buffer", "--", text]);
    tmux.command(&["paste-buffer", "-r", "-p"]);
}

fn send_at_once(tmux: &Tmux, text: &str) {
    tmux.command(&["set-buffer", "--", text]);
    tmux.command(&["paste-buffer", "-r"]);
}

#[test]
fn several_lines_in_one_write_are_all_run() {
    let tmux = Tmux::start(state(), "");
    send_at_once(&tmux, "echo one\recho two\rread -r x\rfor read\recho \"<$x>\"\recho last");
    tmux.wait_for_last("user@wardian:~$ echo last");
    let screen = tmux.screen();
    let shown: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let wanted = [
        "user@wardian:~$ echo one",
        "one",
        "user@wardian:~$ echo two",
        "two",
        "user@wardian:~$ read -r x",
        "for read",
        "user@wardian:~$ echo \"<$x>\"",
        "<for read>",
        "user@wardian:~$ echo last",
    ];
    assert!(shown.ends_with(&wanted), "{screen}");
    tmux.keys(&["C-u"]);
    // Marked as pasted, several lines are one text that is edited and then run.
    paste(&tmux, "echo three\recho four");
    tmux.wait_until("the text", |screen| screen.contains("echo four"));
    tmux.keys(&["Enter"]);
    tmux.wait_for("three");
    tmux.wait_for("four");
    tmux.leave();
}

#[test]
fn output_without_a_newline_stays() {
    let tmux = Tmux::start(state(), "");
    tmux.line("printf 'no newline'");
    tmux.wait_for("no newline%");
    tmux.wait_for_last("user@wardian:~$");
    // A newline and a colour: the cursor is where a line begins, and nothing is marked.
    tmux.line("printf 'coloured\\n\\033[0m'");
    tmux.wait_for("coloured");
    tmux.wait_for_last("user@wardian:~$");
    let screen = tmux.screen();
    assert_eq!(screen.matches('%').count(), 1, "{screen}");
    tmux.leave();
}

#[test]
fn errors_at_the_prompt_have_no_line_number() {
    let tmux = Tmux::start(state(), "");
    tmux.line("nosuchcommand");
    tmux.wait_for("bash: nosuchcommand: command not found");
    tmux.line("cd /nowhere; if )");
    tmux.wait_for("bash: syntax error near unexpected token `)'");
    tmux.line("printf 'nosuch\\nif )\\n' > s; . ./s");
    tmux.wait_for("bash: ./s: line 2: syntax error near unexpected token `)'");
    tmux.wait_for("bash: nosuch: command not found");
    tmux.leave();
}

#[test]
fn the_size_is_right_for_the_command_after_a_change() {
    let tmux = Tmux::start(state(), "");
    tmux.command(&["resize-window", "-x", "90", "-y", "20"]);
    tmux.line("echo $LINES by $COLUMNS, yes");
    tmux.wait_for("20 by 90, yes");
    tmux.leave();
}

#[test]
fn a_pager_gives_the_screen_back() {
    let tmux = Tmux::start(state(), "");
    tmux.line("echo before; seq 100 | less");
    tmux.wait_for_last(":");
    assert!(!tmux.screen().contains("before"), "{}", tmux.screen());
    tmux.keys(&["Space"]);
    tmux.wait_for("46");
    tmux.keys(&["Up"]);
    tmux.wait_for("23");
    tmux.keys(&["G"]);
    tmux.wait_for_last("(END)");
    tmux.command(&["resize-window", "-x", "60", "-y", "10"]);
    tmux.keys(&["g"]);
    tmux.wait_for_last(":");
    tmux.keys(&["q"]);
    tmux.wait_for_last("user@wardian:~$");
    tmux.wait_for("before");
    assert!(!tmux.screen().contains("100\n"), "{}", tmux.screen());
    tmux.leave();
}

#[test]
fn files_are_edited() {
    let tmux = Tmux::start(state(), "");
    tmux.line("printf 'first\\nsecond\\n' > note; chmod 640 note; nano note");
    tmux.wait_until("the editor", |screen| screen.contains("^X Exit") && screen.contains("second"));
    tmux.keys(&["Down", "End"]);
    tmux.command(&["send-keys", "-l", " äöü 漢字"]);
    tmux.keys(&["Enter"]);
    tmux.command(&["send-keys", "-l", "third"]);
    tmux.wait_until("what was typed", |screen| screen.contains("third") && screen.contains("Modified"));
    tmux.keys(&["C-k", "M-u"]);
    tmux.command(&["resize-window", "-x", "60", "-y", "12"]);
    tmux.wait_until("the new size", |screen| screen.lines().count() <= 12 && screen.contains("third"));
    tmux.keys(&["C-x"]);
    tmux.wait_until("the question", |screen| screen.contains("Save modified buffer?"));
    tmux.keys(&["y"]);
    tmux.wait_until("the name", |screen| screen.contains("File Name to Write: note"));
    tmux.keys(&["Enter"]);
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("cat note; stat -c %a note; ls -A");
    tmux.wait_for("second äöü 漢字");
    tmux.wait_for("third");
    tmux.wait_for("640");
    tmux.wait_for("note");
    // What a command edits, it gets.
    tmux.line("export EDITOR=nano; echo to be edited");
    tmux.wait_for("to be edited");
    tmux.line("fc");
    tmux.wait_until("the command", |screen| screen.contains("^X Exit") && screen.contains("to be edited"));
    tmux.keys(&["End"]);
    tmux.command(&["send-keys", "-l", " and run"]);
    tmux.keys(&["C-s", "C-x"]);
    tmux.wait_for("to be edited and run");
    tmux.leave();
}

#[test]
fn keys_after_escape_in_one_write_are_keys_of_vi() {
    let tmux = Tmux::start(state(), "");
    tmux.line("printf 'first\\nlast\\n' > note; vi note");
    tmux.wait_until("the editor", |screen| screen.contains("last") && screen.contains('~'));
    // As a program types: the text, Escape and what follows without a pause; O opens a line above.
    send_at_once(&tmux, "oin between\u{1b}Oabove\u{1b}:wq\r");
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("paste -sd , note");
    tmux.wait_for("first,above,in between,last");
    tmux.leave();
}

#[test]
fn text_that_cannot_be_saved_is_not_lost() {
    let tmux = Tmux::start(state(), "");
    tmux.line("mkdir full; echo old > full/keep");
    tmux.line("chmod 400 full/keep; chmod 500 full; nano full/keep");
    tmux.wait_until("the editor", |screen| screen.contains("^X Exit") && screen.contains("old"));
    tmux.command(&["send-keys", "-l", "new "]);
    tmux.keys(&["C-s"]);
    tmux.wait_until("the error", |screen| screen.contains("Error writing full/keep: Permission denied"));
    assert!(tmux.screen().contains("new old"), "{}", tmux.screen());
    tmux.keys(&["C-o", "C-u"]);
    tmux.command(&["send-keys", "-l", "elsewhere"]);
    tmux.keys(&["Enter"]);
    tmux.wait_until("that it is written", |screen| screen.contains("Wrote 1 lines"));
    tmux.keys(&["C-x"]);
    tmux.wait_for_last("user@wardian:~$");
    tmux.line("cat full/keep elsewhere");
    tmux.wait_for("old");
    tmux.wait_for("new old");
    tmux.leave();
}

#[test]
fn what_was_typed_is_there_the_next_time() {
    let tmux = Tmux::start(state(), "");
    tmux.line("echo a rare orchid");
    tmux.wait_for("a rare orchid");
    let state = tmux.leave();
    let saved = std::fs::read_to_string(Path::new(state.path()).join("wardian/history")).expect("a history");
    assert_eq!(saved, "echo a rare orchid\n");

    let tmux = Tmux::start(state, "");
    tmux.keys(&["Up"]);
    tmux.wait_for_last("user@wardian:~$ echo a rare orchid");
    tmux.keys(&["C-u"]);
    tmux.line("!echo:s/orchid/fern/");
    tmux.wait_for("a rare fern");
    let state = tmux.leave();

    let tmux = Tmux::start(state, "--no-history");
    tmux.line("history | wc -l");
    tmux.wait_for("1");
    tmux.leave();
}

#[test]
fn what_changed_in_overlays_is_shown_and_applied_on_leaving() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("text");
    std::fs::write(&file, "colour\n").unwrap();
    let mount = format!("--mount {}:/src:overlay", directory.path().display());
    let tmux = Tmux::start(state(), &format!("{mount} --diff --apply --memory 64M --processes 20"));
    tmux.line("sed -i s/colour/color/ /src/text");
    tmux.wait_for_last("user@wardian:~$");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "colour\n", "not before the end");
    tmux.line("exit");
    tmux.wait_for("left with 0");
    assert!(tmux.screen().lines().any(|line| line == "+color"), "{}", tmux.screen());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "color\n");
}

#[test]
fn leaving_applies_changes_though_the_last_command_failed_unless_a_code_is_given() {
    for (leave, left, after, said) in [
        ("exit", "left with 1", "color\n", "1 change applied"),
        ("exit 3", "left with 3", "colour\n", "nothing was applied"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("text");
        std::fs::write(&file, "colour\n").unwrap();
        let tmux =
            Tmux::start(state(), &format!("--mount {}:/src:overlay --apply", directory.path().display()));
        tmux.line("sed -i s/colour/color/ /src/text; false");
        tmux.wait_for_last("user@wardian:~$");
        tmux.line(leave);
        tmux.wait_for(left);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "{leave}");
        assert!(tmux.screen().contains(said), "{}", tmux.screen());
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let (code, stdout, stderr) = crate::shown(crate::wardian(&["shell"]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert_eq!(
        stderr,
        "wardian: the shell needs a terminal (to run a script from standard input: wardian run -)\n"
    );
}

#[test]
fn completions_are_accepted_by_their_shells() {
    let (code, script, _) = crate::shown(crate::wardian(&["completions", "bash"]));
    assert_eq!(code, 0);
    let checked = Command::new("bash")
        .args(["-c", "eval \"$1\" && complete -p wardian", "bash", &script])
        .output()
        .expect("bash runs");
    assert!(String::from_utf8_lossy(&checked.stdout).contains("_wardian"), "{checked:?}");
    for shell in ["zsh", "fish"] {
        let (code, script, _) = crate::shown(crate::wardian(&["completions", shell]));
        assert_eq!(code, 0);
        assert!(script.contains("no-history"), "{shell}");
    }
}
