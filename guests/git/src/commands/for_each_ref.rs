//! `git for-each-ref`, `show-ref`, `update-ref`, `symbolic-ref`.

use crate::date;
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::object::{self, Kind, Person};
use crate::options::Reader;
use crate::out;
use crate::pattern;
use crate::refs::{self, Expect, Value};
use crate::remote;
use crate::repo::Repo;
use crate::revision;
use crate::walk;

const FOR_EACH_REF: Reader = Reader {
    command: "for-each-ref",
    usage: "git for-each-ref [<options>] [<pattern>]",
    list: "s|shell! p|perl! python! tcl! count= format= color? sort= points-at= merged?! no-merged?! contains?! no-contains?! ignore-case!",
    in_order: false,
};

pub fn for_each_ref(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = FOR_EACH_REF.read(arguments)?;
    let format =
        options.text("format").unwrap_or_else(|| "%(objectname) %(objecttype)\t%(refname)".to_owned());
    let fits = |name: &[u8]| {
        options.args.is_empty()
            || options.args.iter().any(|pattern| {
                let directory = [pattern.strip_suffix(b"/").unwrap_or(pattern), b"/"].concat();
                name == pattern.as_slice()
                    || name.starts_with(&directory)
                    || pattern::matches(pattern, name, true, false)
            })
    };
    let mut list = refs::list(repo, b"refs/")?;
    list.retain(|(name, _)| fits(name));
    if let Some(target) = options.value("points-at") {
        let target = revision::get(repo, target)?;
        list.retain(|(_, oid)| {
            *oid == target || repo.odb.peel(oid).is_ok_and(|(peeled, _)| peeled == target)
        });
    }
    let keys: Vec<String> = options.values("sort").map(text).collect();
    for key in &keys {
        sort(repo, &mut list, key)?;
    }
    let most = options
        .number("count")?
        .and_then(|n| usize::try_from(n).ok())
        .filter(|n| *n > 0)
        .unwrap_or(usize::MAX);
    for (name, oid) in list.iter().take(most) {
        out::bytes_line(&expand(repo, &format, name, oid)?);
    }
    Ok(0)
}

/// Sorts by a field; `-` before it turns the order round.
pub fn sort(repo: &Repo, list: &mut [(Vec<u8>, Oid)], key: &str) -> Res<()> {
    let (reverse, field) = key.strip_prefix('-').map_or((false, key), |field| (true, field));
    let (version, field) = match field {
        "v:refname" | "version:refname" => (true, "refname"),
        field => (false, field),
    };
    let mut keyed = Vec::new();
    for (name, oid) in list.iter() {
        let dated = field.ends_with("date");
        let place = if dated { format!("{field}:unix") } else { field.to_owned() };
        let value = text(&field_of(repo, &place, name, oid)?);
        let number = if dated { value.parse::<i64>().unwrap_or(0) } else { 0 };
        keyed.push((number, if dated { String::new() } else { value }, name.clone(), *oid));
    }
    keyed.sort_by(|a, b| {
        let by_text =
            if version { toolkit::version::compare(a.1.as_bytes(), b.1.as_bytes()) } else { a.1.cmp(&b.1) };
        let order = a.0.cmp(&b.0).then(by_text);
        if reverse { order.reverse() } else { order }
    });
    for (place, (_, _, name, oid)) in list.iter_mut().zip(keyed) {
        *place = (name, oid);
    }
    Ok(())
}

/// A format with its `%(…)` filled in.
pub fn expand(repo: &Repo, format: &str, name: &[u8], oid: &Oid) -> Res<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(inner) = rest.strip_prefix('(') {
            let Some(end) = inner.find(')') else { fatal!("malformed format string %{rest}") };
            out.extend_from_slice(&field_of(repo, &inner[..end], name, oid)?);
            rest = &inner[end + 1..];
        } else if let Some(after) = rest.strip_prefix('%') {
            out.push(b'%');
            rest = after;
        } else if let Some(byte) = rest.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            rest = &rest[2..];
        } else {
            out.push(b'%');
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

fn field_of(repo: &Repo, place: &str, name: &[u8], oid: &Oid) -> Res<Vec<u8>> {
    if let Some(inner) = place.strip_prefix('*') {
        let (peeled, _) = repo.odb.peel(oid)?;
        return if peeled == *oid { Ok(Vec::new()) } else { field_of(repo, inner, name, &peeled) };
    }
    let (field, option) = place.split_once(':').unwrap_or((place, ""));
    let object = repo.odb.read(oid)?;
    let commit = (object.kind == Kind::Commit).then(|| repo.odb.commit(oid)).transpose()?;
    let tag = (object.kind == Kind::Tag).then(|| repo.odb.tag(oid)).transpose()?;
    let message = commit
        .as_ref()
        .map(|commit| commit.message.clone())
        .or_else(|| tag.as_ref().map(|tag| tag.message.clone()))
        .unwrap_or_default();
    let author = commit.as_ref().map(|commit| commit.author.clone());
    let committer = commit.as_ref().map(|commit| commit.committer.clone());
    let tagger = tag.as_ref().and_then(|tag| tag.tagger.clone());
    let creator = committer.clone().or_else(|| tagger.clone());
    let of = |who: Option<Person>, what: &str| -> Res<Vec<u8>> {
        let Some(who) = who else { return Ok(Vec::new()) };
        Ok(match what {
            "name" => who.name,
            "email" if option == "trim" => who.email,
            "email" => [b"<", &who.email[..], b">"].concat(),
            "date" => match date::Style::named(if option.is_empty() { "default" } else { option }) {
                Some(style) => date::show(who.time, who.zone, &style).into_bytes(),
                None => fatal!("unknown date format {option}"),
            },
            _ => who.line(),
        })
    };
    Ok(match field {
        "refname" if option == "short" => short_name(name).to_vec(),
        "refname" => strip(name, option),
        "objectname" if option == "short" => repo.short(oid).into_bytes(),
        "objectname" => oid.hex().into_bytes(),
        "objecttype" => object.kind.name().as_bytes().to_vec(),
        "objectsize" => object.data.len().to_string().into_bytes(),
        "tree" => commit.map_or(Vec::new(), |commit| commit.tree.hex().into_bytes()),
        "parent" => commit.map_or(Vec::new(), |commit| {
            commit.parents.iter().map(Oid::hex).collect::<Vec<_>>().join(" ").into_bytes()
        }),
        "subject" => object::subject(&message),
        "body" => object::split_message(&message).1.to_vec(),
        "contents" if option == "subject" => object::subject(&message),
        "contents" if option == "body" => object::split_message(&message).1.to_vec(),
        "contents" => message,
        "HEAD" => {
            let head = refs::current_branch(repo)?.map(|branch| [b"refs/heads/", &branch[..]].concat());
            if head.as_deref() == Some(name) { b"*".to_vec() } else { b" ".to_vec() }
        }
        "upstream" => {
            let upstream =
                name.strip_prefix(b"refs/heads/").and_then(|branch| remote::upstream(repo, branch));
            match (upstream, option) {
                (None, _) => Vec::new(),
                (Some(full), "short") => short_name(&full).to_vec(),
                (Some(full), "track") => track(repo, oid, &full)?.into_bytes(),
                (Some(full), _) => full,
            }
        }
        "symref" => match refs::read(repo, name)? {
            Some(Value::Symbolic(target)) => target,
            _ => Vec::new(),
        },
        "color" => Vec::new(),
        _ => match [("author", author), ("committer", committer), ("tagger", tagger), ("creator", creator)]
            .into_iter()
            .find_map(|(role, who)| field.strip_prefix(role).map(|what| (who, what)))
        {
            Some((who, what)) => of(who, what)?,
            None => fatal!("unknown field name: {field}"),
        },
    })
}

fn track(repo: &Repo, oid: &Oid, upstream: &[u8]) -> Res<String> {
    let Some(theirs) = refs::resolve(repo, upstream)? else { return Ok("[gone]".to_owned()) };
    Ok(match walk::ahead_behind(repo, oid, &theirs)? {
        (0, 0) => String::new(),
        (ahead, 0) => format!("[ahead {ahead}]"),
        (0, behind) => format!("[behind {behind}]"),
        (ahead, behind) => format!("[ahead {ahead}, behind {behind}]"),
    })
}

fn short_name(name: &[u8]) -> &[u8] {
    let short = refs::short(name);
    if name.starts_with(b"refs/remotes/") { short.strip_suffix(b"/HEAD").unwrap_or(short) } else { short }
}

/// `lstrip=N` and `rstrip=N`.
fn strip(name: &[u8], option: &str) -> Vec<u8> {
    let parts: Vec<&[u8]> = name.split(|&byte| byte == b'/').collect();
    let count = option.split_once('=').and_then(|(_, count)| count.parse::<isize>().ok()).unwrap_or(0);
    let kept = match count {
        count if count >= 0 => parts.len().saturating_sub(count.unsigned_abs()),
        count => count.unsigned_abs().min(parts.len()),
    };
    match option.split('=').next() {
        Some("lstrip" | "strip") => parts[parts.len() - kept..].join(&b'/'),
        Some("rstrip") => parts[..kept].join(&b'/'),
        _ => name.to_vec(),
    }
}

const SHOW_REF: Reader = Reader {
    command: "show-ref",
    usage: "git show-ref [-q | --quiet] [--verify] [--head] [-d | --dereference] [-s | --hash[=<n>]] [--abbrev[=<n>]] [--tags] [--heads] [--] [<pattern>...]",
    list: "tags heads verify head d|dereference s|hash? abbrev? q|quiet exclude-existing?!",
    in_order: false,
};

pub fn show_ref(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = SHOW_REF.read(arguments)?;
    let show = |name: &[u8], oid: &Oid| {
        if options.has("quiet") {
            return;
        }
        let length = options.text("hash").or_else(|| options.text("abbrev")).and_then(|n| n.parse().ok());
        let shown = if length.is_some() || options.has("abbrev") {
            repo.odb.abbreviate(oid, length)
        } else {
            oid.hex()
        };
        match options.has("hash") {
            true => out::line(shown),
            false => out::bytes_line(&[shown.as_bytes(), b" ", name].concat()),
        }
    };
    if options.has("verify") {
        for name in &options.args {
            match refs::resolve(repo, name)?.filter(|_| name.starts_with(b"refs/") || name == b"HEAD") {
                Some(oid) => show(name, &oid),
                None if options.has("quiet") => return Ok(1),
                None => fatal!("'{}' - not a valid ref", text(name)),
            }
        }
        return Ok(0);
    }
    let mut list = refs::list(repo, b"refs/")?;
    if options.has("heads") || options.has("tags") {
        list.retain(|(name, _)| {
            options.has("heads") && name.starts_with(b"refs/heads/")
                || options.has("tags") && name.starts_with(b"refs/tags/")
        });
    }
    let fits = |name: &[u8]| {
        options.args.is_empty()
            || options
                .args
                .iter()
                .any(|part| name == part.as_slice() || name.ends_with(&[b"/", &part[..]].concat()))
    };
    list.retain(|(name, _)| fits(name));
    if options.has("head")
        && let Some(head) = repo.head()?
    {
        list.insert(0, (b"HEAD".to_vec(), head));
    }
    for (name, oid) in &list {
        show(name, oid);
        let (peeled, _) = repo.odb.peel(oid)?;
        if options.has("dereference") && peeled != *oid {
            show(&[&name[..], b"^{}"].concat(), &peeled);
        }
    }
    Ok(i32::from(list.is_empty()))
}

const UPDATE_REF: Reader = Reader {
    command: "update-ref",
    usage: "git update-ref [<options>] <refname> <new-oid> [<old-oid>]",
    list: "m= d no-deref z stdin! create-reflog",
    in_order: false,
};

pub fn update_ref(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = UPDATE_REF.read(arguments)?;
    let value = |written: &[u8]| match Oid::from_hex(written).filter(Oid::is_null) {
        Some(null) => Ok(null),
        None => match revision::find(repo, written)? {
            Some(oid) => Ok(oid),
            None => Err(Fail::Fatal(format!("{}: not a valid SHA1", text(written)))),
        },
    };
    let expect = |written: Option<&Vec<u8>>| -> Res<Expect> {
        Ok(match written {
            None => Expect::Anything,
            Some(written) => match value(written)? {
                null if null.is_null() => Expect::Nothing,
                oid => Expect::Value(oid),
            },
        })
    };
    match options.args.as_slice() {
        [name, rest @ ..] if options.has("d") => {
            refs::delete(repo, &refs::follow(repo, name)?, expect(rest.first())?)?
        }
        [name, new, rest @ ..] => {
            let new = value(new)?;
            if !refs::is_valid(name) {
                fatal!(
                    "update_ref failed for ref '{0}': refusing to update ref with bad name '{0}'",
                    text(name)
                );
            }
            let why = options.text("m").unwrap_or_default();
            let expected = expect(rest.first())?;
            let done = match (new.is_null(), options.has("no-deref")) {
                (true, _) => refs::delete(repo, name, expected),
                (false, true) => refs::set(repo, name, new, expected, &why),
                (false, false) => refs::update(repo, name, new, expected, &why),
            };
            done.map_err(|fail| match fail {
                Fail::Fatal(why) => Fail::Fatal(format!("update_ref failed for ref '{}': {why}", text(name))),
                other => other,
            })?;
        }
        _ => return Err(UPDATE_REF.bad("")),
    }
    Ok(0)
}

const SYMBOLIC_REF: Reader = Reader {
    command: "symbolic-ref",
    usage: "git symbolic-ref [-m <reason>] <name> <ref>",
    list: "q|quiet d|delete short recurse m=",
    in_order: false,
};

pub fn symbolic_ref(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = SYMBOLIC_REF.read(arguments)?;
    match options.args.as_slice() {
        [name] => match refs::read(repo, name)? {
            Some(Value::Symbolic(_)) if options.has("delete") => refs::delete(repo, name, Expect::Anything)?,
            Some(Value::Symbolic(target)) => {
                out::bytes_line(if options.has("short") { refs::short(&target) } else { &target })
            }
            _ if options.has("quiet") => return Ok(1),
            _ => fatal!("ref {} is not a symbolic ref", text(name)),
        },
        [name, target] => {
            if name == b"HEAD" && !target.starts_with(b"refs/") {
                fatal!("Refusing to point HEAD outside of refs/");
            }
            refs::set_symbolic(repo, name, target, options.text("m").as_deref())?;
        }
        _ => return Err(SYMBOLIC_REF.bad("")),
    }
    Ok(0)
}
