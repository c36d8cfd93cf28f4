//! Commands that set how the shell behaves, or show it.

use super::arguments::{boolean, number};
use super::{Outcome, Words, failed, mode, usage};
use crate::database;
use crate::render::tcl;
use crate::shell::{Shell, ShowPlan, Stats};
use crate::statistics;
use std::time::Duration;

/// Sets what a command with one argument, `on` or `off`, is about.
fn switch(words: &Words, name: &str, setting: &mut bool) -> Outcome {
    match words.as_slice() {
        [_, word] => {
            *setting = boolean(word);
            Outcome::Done
        }
        _ => usage(&format!(".{name} on|off")),
    }
}

pub fn bail(shell: &mut Shell, words: &Words) -> Outcome {
    switch(words, "bail", &mut shell.bail)
}

pub fn echo(shell: &mut Shell, words: &Words) -> Outcome {
    switch(words, "echo", &mut shell.echo)
}

pub fn changes(shell: &mut Shell, words: &Words) -> Outcome {
    switch(words, "changes", &mut shell.show_changes)
}

pub fn timer(shell: &mut Shell, words: &Words) -> Outcome {
    switch(words, "timer", &mut shell.timer)
}

/// Output is always as it is: there is no other way on Unix.
pub fn binary(_: &mut Shell, words: &Words) -> Outcome {
    switch(words, "binary", &mut false)
}

pub fn headers(shell: &mut Shell, words: &Words) -> Outcome {
    let outcome = switch(words, "headers", &mut shell.style.headers);
    shell.style.headers_chosen |= outcome == Outcome::Done;
    outcome
}

pub fn explain(shell: &mut Shell, words: &Words) -> Outcome {
    shell.explain_mode = match words.get(1) {
        Some(word) if word == b"auto" => true,
        Some(word) => boolean(word),
        None => true,
    };
    Outcome::Done
}

pub fn eqp(shell: &mut Shell, words: &Words) -> Outcome {
    let [_, word] = words.as_slice() else { return usage(".eqp off|on|trace|trigger|full") };
    shell.show_plan = match word.as_slice() {
        b"full" => ShowPlan::Full,
        b"trigger" => ShowPlan::Trigger,
        word if boolean(word) => ShowPlan::On,
        _ => ShowPlan::Off,
    };
    Outcome::Done
}

pub fn stats(shell: &mut Shell, words: &Words) -> Outcome {
    match words.as_slice() {
        [_] => {
            let text = statistics::of_connection(shell.database());
            shell.out.put(text);
        }
        [_, word] => {
            shell.stats = match word.as_slice() {
                b"stmt" => Stats::Statement,
                b"vmstep" => Stats::Steps,
                word if boolean(word) => Stats::On,
                _ => Stats::Off,
            }
        }
        _ => return usage(".stats ?on|off|stmt|vmstep?"),
    }
    Outcome::Done
}

pub fn nullvalue(shell: &mut Shell, words: &Words) -> Outcome {
    let [_, text] = words.as_slice() else { return usage(".nullvalue STRING") };
    shell.style.null = text.clone();
    Outcome::Done
}

pub fn separator(shell: &mut Shell, words: &Words) -> Outcome {
    match words.as_slice() {
        [_, column] => shell.style.column_separator = column.clone(),
        [_, column, row] => {
            shell.style.column_separator = column.clone();
            shell.style.row_separator = row.clone();
        }
        _ => return usage(".separator COL ?ROW?"),
    }
    Outcome::Done
}

pub fn width(shell: &mut Shell, words: &Words) -> Outcome {
    let wanted = |word: &Vec<u8>| number(word).clamp(-30_000, 30_000) as i32;
    shell.style.widths = words[1..].iter().map(wanted).collect();
    Outcome::Done
}

pub fn print(shell: &mut Shell, words: &Words) -> Outcome {
    shell.out.put([&words[1..].join(&b' ')[..], b"\n"].concat());
    Outcome::Done
}

pub fn prompt(shell: &mut Shell, words: &Words) -> Outcome {
    for (prompt, word) in shell.prompts.iter_mut().zip(&words[1..]) {
        *prompt = word.clone();
    }
    Outcome::Done
}

pub fn timeout(shell: &mut Shell, words: &Words) -> Outcome {
    let patience = words.get(1).map_or(0, |word| number(word)).clamp(0, i64::from(i32::MAX));
    match shell.database().connection.busy_timeout(Duration::from_millis(patience as u64)) {
        Ok(()) => Outcome::Done,
        Err(error) => failed(&[b"Error: ", error.to_string().as_bytes()]),
    }
}

pub fn version(shell: &mut Shell, _: &Words) -> Outcome {
    let (version, source) = database::version();
    shell.out.put(format!("SQLite {version} {source}\n"));
    Outcome::Done
}

pub fn show(shell: &mut Shell, words: &Words) -> Outcome {
    if words.len() > 1 {
        return usage(".show");
    }
    let on_or_off = |is_on: bool| if is_on { "on" } else { "off" };
    let style = &shell.style;
    let stats = match shell.stats {
        Stats::Off => "off",
        Stats::On => "on",
        Stats::Statement => "stmt",
        Stats::Steps => "vmstep",
    };
    let plan = match shell.show_plan {
        ShowPlan::Off => "off",
        ShowPlan::On => "on",
        ShowPlan::Trigger => "trigger",
        ShowPlan::Full => "full",
    };
    let quoted = |text: &[u8]| String::from_utf8_lossy(&tcl(text)).into_owned();
    let widths: String = style.widths.iter().map(|width| format!("{width} ")).collect();
    let lines = [
        ("echo", on_or_off(shell.echo).to_owned()),
        ("eqp", plan.to_owned()),
        ("explain", if shell.explain_mode { "auto" } else { "off" }.to_owned()),
        ("headers", on_or_off(style.headers).to_owned()),
        ("mode", mode::described_in_show(style)),
        ("nullvalue", quoted(&style.null)),
        ("output", String::from_utf8_lossy(&shell.out.name).into_owned()),
        ("colseparator", quoted(&style.column_separator)),
        ("rowseparator", quoted(&style.row_separator)),
        ("stats", stats.to_owned()),
        ("width", widths),
        ("filename", String::from_utf8_lossy(&shell.file).into_owned()),
    ];
    let text: String = lines.iter().map(|(label, value)| format!("{label:>12}: {value}\n")).collect();
    shell.out.put(text);
    Outcome::Done
}
