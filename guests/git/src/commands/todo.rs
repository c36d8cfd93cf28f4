//! The list of what `git rebase -i` does: read, written and shown to an editor.

use crate::fail::{Fail, Res};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::out;
use crate::repo::Repo;
use crate::revision;

use super::program;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verb {
    Pick,
    Reword,
    Edit,
    Squash,
    Fixup,
    Drop,
    Exec,
    Break,
    Nothing,
}

const VERBS: [(&str, &str, Verb); 9] = [
    ("pick", "p", Verb::Pick),
    ("reword", "r", Verb::Reword),
    ("edit", "e", Verb::Edit),
    ("squash", "s", Verb::Squash),
    ("fixup", "f", Verb::Fixup),
    ("drop", "d", Verb::Drop),
    ("exec", "x", Verb::Exec),
    ("break", "b", Verb::Break),
    ("noop", "noop", Verb::Nothing),
];

#[derive(Clone, Debug)]
pub struct Item {
    pub verb: Verb,
    /// Of all but commands and breaks.
    pub oid: Oid,
    /// What follows the verb.
    pub rest: String,
}

impl Item {
    pub fn of(repo: &Repo, verb: Verb, oid: &Oid) -> Res<Item> {
        let subject = text(&repo.odb.commit(oid)?.subject());
        Ok(Item { verb, oid: *oid, rest: format!("{oid} {subject}") })
    }

    pub fn exec(command: &str) -> Item {
        Item { verb: Verb::Exec, oid: Oid::NULL, rest: command.to_owned() }
    }

    pub fn line(&self) -> String {
        let name = VERBS.iter().find(|(.., verb)| *verb == self.verb).map_or("pick", |(name, ..)| name);
        if self.rest.is_empty() { format!("{name}\n") } else { format!("{name} {}\n", self.rest) }
    }
}

const FIX: &str = "You can fix this with 'git rebase --edit-todo' and then run 'git rebase --continue'.\nOr you can abort the rebase with 'git rebase --abort'.";

/// Reads a list. A line that means nothing is named, and the list is none.
pub fn read(repo: &Repo, list: &str) -> Res<Vec<Item>> {
    let mut items = Vec::new();
    let mut failed = false;
    for (at, line) in list.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match item(repo, line)? {
            Some(item) if !(matches!(item.verb, Verb::Squash | Verb::Fixup) && items.is_empty()) => {
                items.push(item);
            }
            Some(item) => {
                let name = if item.verb == Verb::Squash { "squash" } else { "fixup" };
                out::complain(format!("error: cannot '{name}' without a previous commit"));
                failed = true;
            }
            None => {
                out::complain(format!("error: invalid line {}: {line}", at + 1));
                failed = true;
            }
        }
    }
    if failed {
        out::complain(FIX);
        return Err(Fail::Code(1));
    }
    Ok(items)
}

fn item(repo: &Repo, line: &str) -> Res<Option<Item>> {
    let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some((.., verb)) = VERBS.iter().find(|(long, short, _)| *long == word || *short == word) else {
        return Ok(None);
    };
    match verb {
        Verb::Exec if rest.is_empty() => Ok(None),
        Verb::Exec => Ok(Some(Item::exec(rest))),
        Verb::Break | Verb::Nothing => Ok(Some(Item { verb: *verb, oid: Oid::NULL, rest: String::new() })),
        _ => {
            let name = rest.split([' ', '\t']).next().unwrap_or_default();
            let Some(oid) = revision::find(repo, name.as_bytes())? else { return Ok(None) };
            let oid = repo.odb.peel(&oid)?.0;
            Ok(Some(Item::of(repo, *verb, &oid)?))
        }
    }
}

/// A list as people see it.
pub fn shown(repo: &Repo, items: &[Item]) -> String {
    let short = repo.config.bool("rebase.abbreviatecommands", false);
    let mut list = String::new();
    for item in items {
        let (long, letter, _) = VERBS.iter().find(|(.., verb)| *verb == item.verb).unwrap_or(&VERBS[0]);
        let name = if short { letter } else { long };
        let rest = match item.oid.is_null() {
            true => item.rest.clone(),
            false => {
                let (_, subject) = item.rest.split_once(' ').unwrap_or((&item.rest, ""));
                format!("{} {subject}", repo.short(&item.oid))
            }
        };
        list += format!("{name} {rest}").trim_end();
        list.push('\n');
    }
    list
}

const HELP: &str = "#
# Each line is done in turn, the first one first:
# pick COMMIT     take the commit
# reword COMMIT   take it, and edit its message
# edit COMMIT     take it, and stop so that it can be amended
# squash COMMIT   add it to the commit before it, and edit both messages
# fixup COMMIT    add it to the commit before it, whose message stays
# drop COMMIT     leave it out, as if the line were not here
# exec COMMAND    run a command, and stop if it fails
# break           stop here
# A list without lines leaves everything as it is.
#
";

/// Lets the user edit a list.
pub fn edit(repo: &Repo, list: String, about: &str) -> Res<String> {
    let file = repo.own("rebase-merge/git-rebase-todo");
    let content = format!("{list}\n{about}{HELP}");
    files::write(&file, content.as_bytes())?;
    program::edit_with(repo, &file, "GIT_SEQUENCE_EDITOR", "sequence.editor").map_err(|fail| match fail {
        // It was said which editor failed.
        Fail::Error(_) => Fail::Code(1),
        fail => fail,
    })?;
    Ok(text(&files::read_if_there(&file)?.unwrap_or_default()))
}

/// Moves `fixup! SUBJECT` and `squash! SUBJECT` behind the commit that they are about.
pub fn autosquash(items: Vec<Item>) -> Vec<Item> {
    let mut done: Vec<Item> = Vec::new();
    for mut item in items {
        let subject = item.rest.split_once(' ').map_or("", |(_, subject)| subject).to_owned();
        let verb = match () {
            () if subject.starts_with("fixup! ") => Verb::Fixup,
            () if subject.starts_with("squash! ") => Verb::Squash,
            () => {
                done.push(item);
                continue;
            }
        };
        let mut wanted = subject.as_str();
        while let Some(rest) = wanted.strip_prefix("fixup! ").or_else(|| wanted.strip_prefix("squash! ")) {
            wanted = rest;
        }
        let is_it = |one: &Item| {
            let (oid, own) = one.rest.split_once(' ').unwrap_or((&one.rest, ""));
            one.verb == Verb::Pick && (own == wanted || wanted.len() >= 7 && oid.starts_with(wanted))
        };
        let Some(at) = done.iter().position(is_it).or_else(|| {
            done.iter().position(|one| {
                one.verb == Verb::Pick
                    && one.rest.split_once(' ').is_some_and(|(_, own)| own.starts_with(wanted))
            })
        }) else {
            done.push(item);
            continue;
        };
        let end = done[at + 1..].iter().position(|one| !matches!(one.verb, Verb::Fixup | Verb::Squash));
        let end = end.map_or(done.len(), |count| at + 1 + count);
        item.verb = verb;
        done.insert(end, item);
    }
    done
}
