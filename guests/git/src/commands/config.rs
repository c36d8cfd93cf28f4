//! `git config`.

use crate::config::{self, Config, Setting, canonical};
use crate::fail::{Fail, Res, fatal};
use crate::files::{join, text};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::repo::{self, Global, Repo};

const READER: Reader = Reader {
    command: "config",
    usage: "git config [<options>]",
    list: "global system local worktree! f|file= blob=! get get-all get-regexp get-urlmatch! replace-all add unset unset-all \
           rename-section remove-section l|list e|edit! get-color! get-colorbool! t|type= bool int bool-or-int path z|null \
           name-only includes show-origin show-scope default= fixed-value",
    in_order: false,
};

pub fn config(global: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let place = Place::choose(global, &options)?;
    let args = &options.args;
    let count = |least: usize, most: usize| {
        if (least..=most).contains(&args.len()) {
            Ok(())
        } else {
            Err(READER.bad(
                "error: wrong number of arguments, should be from ".to_owned()
                    + &format!("{least} to {most}"),
            ))
        }
    };
    let all = |_: &[u8]| true;
    match () {
        () if options.has("list") => {
            place.read(global)?.settings.iter().for_each(|setting| list(setting, &options));
            Ok(0)
        }
        () if options.has("get-regexp") => {
            count(1, 2)?;
            get_matching(&place.read(global)?, &options)
        }
        () if options.has("unset") || options.has("unset-all") => {
            count(1, 2)?;
            unset(&place, &options)
        }
        () if options.has("rename-section") => {
            count(2, 2)?;
            section(&place, &args[0], Some(&args[1]))
        }
        () if options.has("remove-section") => {
            count(1, 1)?;
            section(&place, &args[0], None)
        }
        () if options.has("add") => {
            count(2, 2)?;
            set(&place, &options, true, &all)
        }
        () if options.has("get") || options.has("get-all") || args.len() == 1 => {
            count(1, 2)?;
            get(&place.read(global)?, &options)
        }
        () if args.is_empty() => Err(READER.bad("error: no action specified")),
        () => {
            count(2, 3)?;
            match args.get(2) {
                Some(pattern) => {
                    let chosen = matcher(pattern, &options)?;
                    set(&place, &options, false, &chosen)
                }
                None => set(&place, &options, false, &all),
            }
        }
    }
}

/// Which files are meant.
enum Place {
    All,
    File(Vec<u8>, &'static str),
}

impl Place {
    fn choose(global: &Global, options: &Parsed) -> Res<Place> {
        if let Some(file) = options.value("file") {
            return Ok(Place::File(file.to_vec(), "command"));
        }
        if options.has("global") {
            let files = repo::global_files();
            let existing = files.iter().find(|file| crate::files::exists(file));
            let usual = files.last().filter(|file| crate::files::exists(file)).or(existing).or(files.last());
            return match usual {
                Some(file) => Ok(Place::File(file.clone(), "global")),
                None => Err(Fail::Fatal("$HOME not set".to_owned())),
            };
        }
        if options.has("system") {
            return Ok(Place::File(b"/etc/gitconfig".to_vec(), "system"));
        }
        if options.has("local") {
            return match Repo::find(global)? {
                Some(repo) => Ok(Place::File(join(&repo.common_dir, b"config"), "local")),
                None => fatal!("--local can only be used inside a git repository"),
            };
        }
        Ok(Place::All)
    }

    fn read(&self, global: &Global) -> Res<Config> {
        match self {
            Place::All => match Repo::find(global)? {
                Some(repo) => Ok(repo.config),
                None => repo::outer_config(global, true),
            },
            Place::File(file, scope) => {
                let mut config = Config::default();
                config.add_file(file, scope, 0)?;
                Ok(config)
            }
        }
    }

    /// The file that changes go to.
    fn file(&self) -> Res<Vec<u8>> {
        match self {
            Place::File(file, _) => Ok(file.clone()),
            Place::All => match Repo::find(&Global::default())? {
                Some(repo) => Ok(join(&repo.common_dir, b"config")),
                None => Err(Fail::Fatal("not in a git directory".to_owned())),
            },
        }
    }
}

fn name_of(written: &[u8]) -> Res<Vec<u8>> {
    canonical(written).map_err(|message| {
        out::complain(format!("error: {message}"));
        Fail::Code(if message.starts_with("invalid") { 1 } else { 2 })
    })
}

/// A value in the type asked for.
fn typed(name: &[u8], value: Option<&[u8]>, options: &Parsed) -> Res<Vec<u8>> {
    let kind = options.text("type").or_else(|| {
        ["bool", "int", "bool-or-int", "path"].into_iter().find(|kind| options.has(kind)).map(str::to_owned)
    });
    let bytes = value.unwrap_or(b"");
    let bad =
        |what: &str| Fail::Fatal(format!("bad {what} config value '{}' for '{}'", text(bytes), text(name)));
    match kind.as_deref() {
        Some("bool") => match value.map_or(Some(true), config::as_bool) {
            Some(value) => Ok(value.to_string().into_bytes()),
            None => Err(bad("boolean")),
        },
        Some("int") => match config::as_number(bytes) {
            Some(number) => Ok(number.to_string().into_bytes()),
            None => Err(bad("numeric")),
        },
        Some("bool-or-int") => match config::as_number(bytes) {
            Some(number) => Ok(number.to_string().into_bytes()),
            None => Ok(config::as_bool(bytes).ok_or_else(|| bad("numeric"))?.to_string().into_bytes()),
        },
        Some("path") => Ok(config::expand_home(bytes)),
        Some(kind) => Err(Fail::Fatal(format!("unrecognized --type argument, {kind}"))),
        None => Ok(bytes.to_vec()),
    }
}

fn prefix(setting: &Setting, options: &Parsed) {
    let gap = if options.has("null") { '\0' } else { '\t' };
    if options.has("show-scope") {
        out::put(format!("{}{gap}", setting.scope));
    }
    if options.has("show-origin") {
        out::put(format!("{}{gap}", shown_origin(&setting.origin)));
    }
}

/// The repository's own file is shown as people see it.
fn shown_origin(origin: &str) -> String {
    let here = repo::cwd().map(|here| text(&here)).unwrap_or_default();
    match origin.strip_prefix("file:").and_then(|file| file.strip_prefix(&format!("{here}/"))) {
        Some(inner) if inner.starts_with(".git/") => format!("file:{inner}"),
        _ => origin.to_owned(),
    }
}

fn list(setting: &Setting, options: &Parsed) {
    let zero = options.has("null");
    prefix(setting, options);
    out::put(&setting.name);
    if let Some(value) = setting.value.as_ref().filter(|_| !options.has("name-only")) {
        out::put(if zero { b"\n" } else { b"=" });
        out::put(value);
    }
    out::put(if zero { b"\0" } else { b"\n" });
}

fn matcher(pattern: &[u8], options: &Parsed) -> Res<impl Fn(&[u8]) -> bool + use<>> {
    let (negated, body) = pattern.strip_prefix(b"!").map_or((false, pattern), |body| (true, body));
    let fixed = options.has("fixed-value");
    let whole = pattern.to_vec();
    let syntax = if fixed { wardian_regex::Syntax::Fixed } else { wardian_regex::Syntax::Extended };
    let regex = crate::grep::regex(body, syntax, false)?;
    Ok(move |value: &[u8]| if fixed { value == whole } else { regex.is_match(value) != negated })
}

fn get(config: &Config, options: &Parsed) -> Res<i32> {
    let name = name_of(&options.args[0]).map_err(|_| Fail::Code(1))?;
    let chosen = match options.args.get(1) {
        Some(pattern) => Some(matcher(pattern, options)?),
        None => None,
    };
    let fits = |setting: &&Setting| {
        setting.name == name
            && chosen.as_ref().is_none_or(|chosen| chosen(setting.value.as_deref().unwrap_or(b"")))
    };
    let mut found: Vec<&Setting> = config.settings.iter().filter(fits).collect();
    if !options.has("get-all") {
        found = found.pop().into_iter().collect();
    }
    let end = if options.has("null") { b"\0" } else { b"\n" };
    if found.is_empty() {
        let Some(default) = options.value("default") else { return Ok(1) };
        out::put(typed(&name, Some(default), options)?);
        out::put(end);
        return Ok(0);
    }
    for setting in found {
        prefix(setting, options);
        out::put(typed(&name, setting.value.as_deref(), options)?);
        out::put(end);
    }
    Ok(0)
}

fn get_matching(config: &Config, options: &Parsed) -> Res<i32> {
    let names = crate::grep::regex(&options.args[0], wardian_regex::Syntax::Extended, false)?;
    let values = match options.args.get(1) {
        Some(pattern) => Some(matcher(pattern, options)?),
        None => None,
    };
    let mut any = false;
    for setting in config.settings.iter().filter(|setting| names.is_match(&setting.name)) {
        let value = setting.value.as_deref();
        if values.as_ref().is_some_and(|chosen| !chosen(value.unwrap_or(b""))) {
            continue;
        }
        any = true;
        prefix(setting, options);
        out::put(&setting.name);
        if !options.has("name-only") && value.is_some() {
            out::put(if options.has("null") { b"\n" } else { b" " });
            out::put(typed(&setting.name, value, options)?);
        }
        out::put(if options.has("null") { b"\0" } else { b"\n" });
    }
    Ok(i32::from(!any))
}

/// How many settings of a name a file has.
fn count(file: &[u8], name: &[u8], chosen: &dyn Fn(&[u8]) -> bool) -> Res<usize> {
    let mut config = Config::default();
    config.add_file(file, "local", 0)?;
    Ok(config.all(name).iter().filter(|value| chosen(value)).count())
}

fn set(place: &Place, options: &Parsed, append: bool, chosen: &dyn Fn(&[u8]) -> bool) -> Res<i32> {
    let name = name_of(&options.args[0])?;
    let file = place.file()?;
    let value = typed(&name, Some(&options.args[1]), options)?;
    if !append && !options.has("replace-all") && count(&file, &name, chosen)? > 1 {
        out::complain(format!("warning: {} has multiple values", text(&name)));
        out::complain("error: cannot overwrite multiple values with a single value\n       Use a regexp, --add or --replace-all to change ".to_owned() + &text(&name) + ".");
        return Ok(5);
    }
    config::change(&file, &options.args[0], Some(&value), append, chosen)?;
    Ok(0)
}

fn unset(place: &Place, options: &Parsed) -> Res<i32> {
    let name = name_of(&options.args[0])?;
    let file = place.file()?;
    let pattern = options.args.get(1).map(|pattern| matcher(pattern, options)).transpose()?;
    let chosen = |value: &[u8]| pattern.as_ref().is_none_or(|pattern| pattern(value));
    match count(&file, &name, &chosen)? {
        0 => Ok(5),
        many if many > 1 && !options.has("unset-all") => {
            out::complain(format!("warning: {} has multiple values", text(&name)));
            Ok(5)
        }
        _ => config::change(&file, &name, None, false, &chosen).map(|_| 0),
    }
}

fn section(place: &Place, old: &[u8], new: Option<&Vec<u8>>) -> Res<i32> {
    if config::change_section(&place.file()?, old, new.map(Vec::as_slice))? {
        return Ok(0);
    }
    fatal!("no such section: {}", text(old))
}
