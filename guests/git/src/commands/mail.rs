//! Commits as messages: `git format-patch` writes them, `git am` makes commits of them.

use crate::apply as patches;
use crate::change;
use crate::date::{self, Style as Dates};
use crate::diffing::{Diffing, Formats};
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::index::Index;
use crate::message;
use crate::object::{Commit, Kind, Person};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::pretty;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::run::VERSION;
use crate::walk::{Order, Walk};

use super::{apply, commit, merge};

const FORMAT: Reader = Reader {
    command: "format-patch",
    usage: "git format-patch [<options>] [<since> | <revision-range>]",
    list: "NUM n|numbered N|no-numbered o|output-directory= stdout s|signoff subject-prefix= k|keep-subject start-number= \
           v|reroll-count= q|quiet cover-letter! root signature= no-signature zero-commit suffix= p|no-stat \
           attach?! inline?! thread?! in-reply-to=! to=! cc=! from?! base=! M no-renames U|unified= binary full-index \
           ignore-if-in-upstream! rfc! interdiff=! range-diff=! numbered-files filename-max-length=! encode-email-headers \
           no-encode-email-headers progress",
    in_order: false,
};

pub fn format_patch(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = FORMAT.read(arguments)?;
    let list = chosen(repo, &options)?;
    let start = options.number("start-number")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    let total = (start + list.len()).saturating_sub(1);
    let numbered = match (options.has("numbered"), options.has("no-numbered")) {
        (true, _) => true,
        (_, true) => false,
        _ => list.len() > 1,
    } && !options.has("keep-subject");
    let version = options.text("reroll-count");
    let directory = options.value("output-directory").map(<[u8]>::to_vec);
    if let Some(directory) = &directory
        && !options.has("stdout")
    {
        files::make_dirs(directory)?;
    }
    for (at, oid) in list.iter().enumerate() {
        let commit = repo.odb.commit(oid)?;
        let number = start + at;
        let tag = match (options.has("keep-subject"), &version, numbered) {
            (true, ..) => String::new(),
            (_, version, numbered) => {
                let prefix = options.text("subject-prefix").unwrap_or_else(|| "PATCH".to_owned());
                let version = version.as_ref().map_or(String::new(), |version| format!(" v{version}"));
                let width = total.to_string().len();
                let count = if numbered { format!(" {number:0width$}/{total}") } else { String::new() };
                format!("[{}] ", format!("{prefix}{version}{count}").trim())
            }
        };
        let content = letter(repo, oid, &commit, &tag, &options)?;
        if options.has("stdout") {
            out::put(if at > 0 { "\n" } else { "" });
            out::put(content);
            continue;
        }
        let version = version.as_ref().map_or(String::new(), |version| format!("v{version}-"));
        let mut name = format!("{version}{number:04}-").into_bytes();
        name.extend(pretty::file_like(&commit.subject()));
        name.truncate(64 - b".patch".len() - 1);
        name.extend_from_slice(options.value("suffix").unwrap_or(b".patch"));
        let name = directory.as_ref().map_or(name.clone(), |directory| join(directory, &name));
        files::write(&name, &content)?;
        if !options.has("quiet") {
            out::bytes_line(&name);
        }
    }
    Ok(0)
}

/// The commits that are asked for, the oldest first, without merges.
fn chosen(repo: &Repo, options: &Parsed) -> Res<Vec<Oid>> {
    let mut walk = Walk::new(repo);
    walk.order = Order::Topo;
    let most = options.number("NUM")?.and_then(|number| usize::try_from(number).ok());
    let words = &options.args;
    match words.as_slice() {
        [] => walk.include(crate::revision::get(repo, b"HEAD")?)?,
        [one] if most.is_none() && !options.has("root") && !one.windows(2).any(|pair| pair == b"..") => {
            walk.exclude(crate::revision::get(repo, one)?)?;
            walk.include(crate::revision::get(repo, b"HEAD")?)?;
        }
        words => {
            for word in words {
                if !walk.take(word)? {
                    return Err(crate::revision::unknown(word));
                }
            }
        }
    }
    if words.is_empty() && most.is_none() {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    for oid in walk.run()? {
        if repo.odb.commit(&oid)?.parents.len() < 2 && list.len() < most.unwrap_or(usize::MAX) {
            list.push(oid);
        }
    }
    list.reverse();
    Ok(list)
}

fn letter(repo: &Repo, oid: &Oid, commit: &Commit, tag: &str, options: &Parsed) -> Res<Vec<u8>> {
    let name = if options.has("zero-commit") { Oid::NULL } else { *oid };
    let author = &commit.author;
    let mut content = format!("From {name} Mon Sep 17 00:00:00 2001\nFrom: ").into_bytes();
    content.extend(encoded(&author.name, 0));
    content.extend([b" <", &author.email[..], b">\nDate: "].concat());
    content.extend(date::show(author.time, author.zone, &Dates::Rfc).bytes());
    content.extend_from_slice(b"\nSubject: ");
    let subject = [tag.as_bytes(), &commit.subject()].concat();
    content.extend(folded(&encoded(&subject, tag.len())));
    content.push(b'\n');
    let mut message = commit.message.clone();
    if options.has("signoff") {
        commit::sign_off(repo, &mut message)?;
    }
    let (_, body) = crate::object::split_message(&message);
    if !body.is_ascii() {
        content.extend_from_slice(
            b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n",
        );
    }
    content.push(b'\n');
    content.extend_from_slice(body);
    if !body.is_empty() && !body.ends_with(b"\n") {
        content.push(b'\n');
    }
    let old =
        commit.parents.first().map(|parent| repo.odb.commit(parent).map(|parent| parent.tree)).transpose()?;
    let changes = change::trees(repo, old.as_ref(), Some(&commit.tree), &Pathspec::default())?;
    let mut diffing = Diffing::from(repo, options)?;
    let stat = !options.has("no-stat");
    diffing.formats = Formats { patch: true, stat, summary: stat, ..Formats::default() };
    diffing.widths.total = Some(72);
    let changes = diffing.arrange(repo, changes)?;
    let (done, text) = out::capture(|| diffing.write(repo, &changes));
    done?;
    content.extend_from_slice(if stat { b"---\n" } else { b"\n" });
    content.extend(text);
    let signature = match options.value("signature") {
        _ if options.has("no-signature") => None,
        Some(signature) => Some(signature.to_vec()),
        None => Some(VERSION.as_bytes().to_vec()),
    };
    if let Some(signature) = signature {
        content.extend([b"-- \n", &signature[..], b"\n\n"].concat());
    }
    Ok(content)
}

/// A header's text, encoded as headers are if it is not ASCII. The first `plain` bytes stay as they are.
fn encoded(words: &[u8], plain: usize) -> Vec<u8> {
    if words.is_ascii() {
        return words.to_vec();
    }
    let mut line = words[..plain].to_vec();
    line.extend_from_slice(b"=?UTF-8?q?");
    for &byte in &words[plain..] {
        match byte {
            b' ' => line.extend_from_slice(b"=20"),
            b'=' | b'?' | b'_' => line.extend_from_slice(format!("={byte:02X}").as_bytes()),
            byte if byte.is_ascii_graphic() => line.push(byte),
            byte => line.extend_from_slice(format!("={byte:02X}").as_bytes()),
        }
    }
    line.extend_from_slice(b"?=");
    line
}

/// Long lines are folded at spaces.
fn folded(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut width = "Subject:".len();
    for word in line.split(|&byte| byte == b' ') {
        if width + 1 + word.len() > 78 && !out.is_empty() {
            out.extend_from_slice(b"\n ");
            width = 1;
        } else if !out.is_empty() {
            out.push(b' ');
            width += 1;
        } else {
            width += 1;
        }
        out.extend_from_slice(word);
        width += word.len();
    }
    out
}

const AM: Reader = Reader {
    command: "am",
    usage: "git am [<options>] [(<mbox> | <Maildir>)...]",
    list: "3|3way! s|signoff q|quiet k|keep abort continue r|resolved skip quit show-current-patch? i|interactive! \
           keep-cr! no-keep-cr c|scissors! no-scissors whitespace=! C=! p=! patch-format=! reject! include=! exclude=! \
           committer-date-is-author-date! ignore-date! allow-empty! S|gpg-sign?! no-verify n m|message-id! empty=! \
           retry! u|utf8 no-utf8!",
    in_order: false,
};

/// A message with a patch.
struct Letter {
    author: Person,
    message: Vec<u8>,
    patch: Vec<u8>,
}

pub fn am(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = AM.read(arguments)?;
    repo.work_tree()?;
    let going = files::is_dir(&repo.own("rebase-apply"));
    let verb = ["abort", "continue", "resolved", "skip", "quit", "show-current-patch"]
        .into_iter()
        .find(|name| options.has(name));
    if let Some(verb) = verb {
        if !going {
            fatal!("Resolve operation not in progress, we are not resuming.");
        }
        return resume(repo, verb, &options);
    }
    if going {
        fatal!("previous rebase directory .git/rebase-apply still exists but mbox given.");
    }
    let mut content = Vec::new();
    let stdin = vec![b"-".to_vec()];
    for name in if options.args.is_empty() { &stdin } else { &options.args } {
        content.extend(match name.as_slice() {
            b"-" => toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?,
            name => match files::read_if_there(name)? {
                Some(content) => content,
                None => fatal!("could not open '{}' for reading: No such file or directory", text(name)),
            },
        });
    }
    let index = Index::load(repo)?;
    if !change::tree_and_index(repo, &repo.head_tree()?, &index, &Pathspec::default())?.is_empty() {
        fatal!("Dirty index: cannot apply patches");
    }
    let letters = split(&content);
    if letters.is_empty() {
        fatal!("Patch format detection failed.");
    }
    let directory = repo.own("rebase-apply");
    files::make_dirs(&directory)?;
    let put = |name: &str, content: &[u8]| files::write(&apply::own(repo, name), content);
    for (at, letter) in letters.iter().enumerate() {
        put(&format!("{:04}", at + 1), letter)?;
    }
    put("next", b"1\n")?;
    put("last", format!("{}\n", letters.len()).as_bytes())?;
    put("sign", if options.has("signoff") { b"t\n" } else { b"f\n" })?;
    put("keep", if options.has("keep") { b"t\n" } else { b"f\n" })?;
    put("quiet", if options.has("quiet") { b"t\n" } else { b"f\n" })?;
    put("applying", b"")?;
    let head = repo.head()?.map_or(String::new(), |head| format!("{head}\n"));
    put("orig-head", head.as_bytes())?;
    walk(repo)
}

/// The messages of a mailbox.
fn split(content: &[u8]) -> Vec<Vec<u8>> {
    let mut letters: Vec<Vec<u8>> = Vec::new();
    let mut blank = true;
    for line in crate::lines::split(content) {
        let starts = blank
            && line.starts_with(b"From ")
            && line.windows(3).any(|part| part[1] == b':' && part[0].is_ascii_digit());
        if starts || letters.is_empty() {
            letters.push(Vec::new());
        }
        if let Some(last) = letters.last_mut() {
            last.extend_from_slice(line);
        }
        blank = line.trim_ascii().is_empty();
    }
    letters.retain(|letter| !letter.trim_ascii().is_empty());
    letters
}

fn read(repo: &Repo, content: &[u8], keep: bool, sign: bool) -> Res<Letter> {
    let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
    let lines = crate::lines::split(content);
    let mut at = usize::from(lines.first().is_some_and(|line| line.starts_with(b"From ")));
    while at < lines.len() && !lines[at].trim_ascii().is_empty() {
        let line = lines[at].trim_ascii_end();
        match (line.first(), headers.last_mut()) {
            (Some(b' ' | b'\t'), Some((_, value))) => {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii_start());
            }
            _ => {
                let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
                let value = line.get(colon + 1..).unwrap_or(b"").trim_ascii().to_vec();
                headers.push((text(&line[..colon]).to_lowercase(), value));
            }
        }
        at += 1;
    }
    let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| decoded(value));
    let mut subject = header("subject").unwrap_or_default();
    if !keep {
        while subject.first() == Some(&b'[') {
            let Some(end) = subject.iter().position(|&byte| byte == b']') else { break };
            subject = subject[end + 1..].trim_ascii_start().to_vec();
        }
        while subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"re:")) {
            subject = subject[3..].trim_ascii_start().to_vec();
        }
    }
    let mut author = Person::parse(&header("from").unwrap_or_default());
    if let Some((time, zone)) = header("date").and_then(|date| date::parse(&text(&date))) {
        (author.time, author.zone) = (time, zone);
    }
    if author.email.is_empty() {
        fatal!("empty ident name (for <>) not allowed");
    }
    let is_patch = |line: &&[u8]| {
        line.trim_ascii_end() == b"---" || line.starts_with(b"diff --git ") || line.starts_with(b"Index: ")
    };
    let rest = lines.get(at..).unwrap_or(&[]);
    let end = rest.iter().position(is_patch).unwrap_or(rest.len());
    let mut whole = [&subject[..], b"\n\n", &rest[..end].concat()].concat();
    whole = message::clean(&whole, false);
    if sign {
        commit::sign_off(repo, &mut whole)?;
    }
    Ok(Letter { author, message: whole, patch: rest[end..].concat() })
}

/// A header's text without its encoding.
fn decoded(value: &[u8]) -> Vec<u8> {
    let all = text(value);
    let mut out = Vec::new();
    let mut rest = all.as_str();
    while let Some(at) = rest.find("=?") {
        let parts: Vec<&str> = rest[at + 2..].splitn(4, '?').collect();
        let [_, kind, data, after] = parts.as_slice() else { break };
        let Some(after) = after.strip_prefix('=') else { break };
        if !kind.eq_ignore_ascii_case("q") {
            break;
        }
        let before = &rest[..at];
        if out.is_empty() || !before.trim().is_empty() {
            out.extend_from_slice(before.as_bytes());
        }
        let mut bytes = data.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'_' => out.push(b' '),
                b'=' => {
                    let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                    out.push(u8::from_str_radix(&text(&digits), 16).unwrap_or(b'?'));
                }
                byte => out.push(byte),
            }
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

fn kept(repo: &Repo, name: &str) -> Res<String> {
    Ok(text(files::read_if_there(&apply::own(repo, name))?.unwrap_or_default().trim_ascii()))
}

fn number(repo: &Repo, name: &str) -> Res<usize> {
    match kept(repo, name)?.parse() {
        Ok(number) => Ok(number),
        Err(_) => fatal!("could not read '.git/rebase-apply/{name}'"),
    }
}

fn current(repo: &Repo, at: usize) -> Res<Letter> {
    let content = files::read_if_there(&apply::own(repo, &format!("{at:04}")))?.unwrap_or_default();
    read(repo, &content, kept(repo, "keep")? == "t", kept(repo, "sign")? == "t")
}

fn record(repo: &Repo, letter: &Letter) -> Res<()> {
    let tree = Index::load(repo)?.write_tree(&repo.odb)?;
    let parents = repo.head()?.into_iter().collect();
    let committer = crate::ident::committer(repo)?;
    let commit = Commit {
        tree,
        parents,
        author: letter.author.clone(),
        committer,
        extra: Vec::new(),
        message: letter.message.clone(),
    };
    let oid = repo.odb.write(Kind::Commit, &commit.write())?;
    refs::update(repo, b"HEAD", oid, Expect::Anything, &format!("am: {}", text(&commit.subject())))
}

/// Applies the messages that are left.
fn walk(repo: &Repo) -> Res<i32> {
    let (mut at, last) = (number(repo, "next")?, number(repo, "last")?);
    let quiet = kept(repo, "quiet")? == "t";
    while at <= last {
        files::write(&apply::own(repo, "next"), format!("{at}\n").as_bytes())?;
        let letter = current(repo, at)?;
        let subject = text(&crate::object::subject(&letter.message));
        if !quiet {
            out::line(format_args!("Applying: {subject}"));
        }
        let code = match apply::has_patch(&letter.patch) {
            true => apply::Work::with_index(repo)?.run(&patches::parse(&letter.patch, 1)?)?,
            false => 1,
        };
        if code != 0 {
            if !apply::has_patch(&letter.patch) {
                out::line("Patch is empty.");
            } else {
                out::complain("hint: Use 'git am --show-current-patch=diff' to see the failed patch");
                out::line(format_args!("Patch failed at {at:04} {subject}"));
            }
            out::line(
                "When you have resolved this problem, run \"git am --continue\".\nIf you prefer to skip this patch, run \"git am --skip\" instead.\nTo restore the original branch and stop patching, run \"git am --abort\".",
            );
            return Ok(128);
        }
        record(repo, &letter)?;
        at += 1;
    }
    clear(repo).map(|()| 0)
}

fn clear(repo: &Repo) -> Res<()> {
    files::remove_dir_all(&repo.own("rebase-apply"))
        .map_err(crate::fail::system("could not remove '.git/rebase-apply'"))
}

fn resume(repo: &Repo, verb: &str, options: &Parsed) -> Res<i32> {
    let at = number(repo, "next")?;
    match verb {
        "quit" => clear(repo).map(|()| 0),
        "show-current-patch" => {
            let content = files::read_if_there(&apply::own(repo, &format!("{at:04}")))?.unwrap_or_default();
            match options.text("show-current-patch").as_deref() {
                Some("diff") => out::put(current(repo, at)?.patch),
                _ => out::put(content),
            }
            Ok(0)
        }
        "abort" => {
            let mut index = Index::load(repo)?;
            if let Some(old) = Oid::from_hex(kept(repo, "orig-head")?.as_bytes()) {
                merge::undo(repo, &mut index)?;
                let (tree, new) = (repo.head_tree()?, repo.odb.commit(&old)?.tree);
                crate::switch::to_tree(repo, &mut index, &tree, &new, "am")?;
                index.save(repo)?;
                refs::update(repo, b"HEAD", old, Expect::Anything, "am --abort")?;
            }
            clear(repo).map(|()| 0)
        }
        "skip" => {
            let mut index = Index::load(repo)?;
            merge::undo(repo, &mut index)?;
            index.save(repo)?;
            files::write(&apply::own(repo, "next"), format!("{}\n", at + 1).as_bytes())?;
            walk(repo)
        }
        _ => {
            let letter = current(repo, at)?;
            let index = Index::load(repo)?;
            if !index.unmerged().is_empty() {
                out::line(
                    "You still have unmerged paths in your index.\nYou should 'git add' each file with resolved conflicts to mark them as such.\nYou might run `git rm` on a file to accept \"deleted by them\" for it.",
                );
                return Ok(128);
            }
            out::line(format_args!("Applying: {}", text(&crate::object::subject(&letter.message))));
            if change::tree_and_index(repo, &repo.head_tree()?, &index, &Pathspec::default())?.is_empty() {
                out::line(
                    "No changes - did you forget to use 'git add'?\nIf there is nothing left to stage, chances are that something else\nalready introduced the same changes; you might want to skip this patch.\nWhen you have resolved this problem, run \"git am --continue\".\nIf you prefer to skip this patch, run \"git am --skip\" instead.\nTo restore the original branch and stop patching, run \"git am --abort\".",
                );
                return Ok(128);
            }
            record(repo, &letter)?;
            files::write(&apply::own(repo, "next"), format!("{}\n", at + 1).as_bytes())?;
            walk(repo)
        }
    }
}
