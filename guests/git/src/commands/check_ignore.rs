//! `git check-ignore`.

use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::ignore::Ignore;
use crate::index::Index;
use crate::options::Reader;
use crate::out;
use crate::pathspec;
use crate::quote;
use crate::repo::Repo;

const READER: Reader = Reader {
    command: "check-ignore",
    usage: "git check-ignore [<options>] <pathname>...",
    list: "q|quiet v|verbose stdin z n|non-matching no-index",
    in_order: false,
};

pub fn check_ignore(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let mut paths = options.args.clone();
    let (zero, verbose) = (options.has("z"), options.has("verbose"));
    if options.has("stdin") {
        if !paths.is_empty() {
            fatal!("cannot specify pathnames with --stdin");
        }
        let end = if zero { 0 } else { b'\n' };
        let input = toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?;
        paths =
            input.split(|&byte| byte == end).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    } else if paths.is_empty() {
        fatal!("no path specified");
    }
    let (index, ignore) = (Index::load(repo)?, Ignore::new(repo));
    let mut found = false;
    for written in &paths {
        let path = pathspec::from_top(repo, written)?;
        let is_dir = crate::files::is_dir(&repo.in_tree(&path));
        let known = !options.has("no-index") && index.has(&path);
        let rule = if known { None } else { ignore.explain(&path, is_dir) };
        let counts = rule.as_ref().is_some_and(|(.., negated)| verbose || !negated);
        found |= counts;
        if options.has("quiet") || !counts && !options.has("non-matching") {
            continue;
        }
        let gap: &str = if zero { "\0" } else { "\t" };
        let shown = if zero { written.clone() } else { quote::path(written) };
        if verbose {
            match rule {
                Some((source, line, pattern, _)) if zero => {
                    out::put(format!("{}\0{line}\0{}\0", text(&source), text(&pattern)));
                }
                Some((source, line, pattern, _)) => {
                    out::put(format!("{}:{line}:{}{gap}", text(&source), text(&pattern)));
                }
                None if zero => out::put("\0\0\0"),
                None => out::put(format!("::{gap}")),
            }
        }
        out::put(shown);
        out::put(if zero { "\0" } else { "\n" });
    }
    Ok(i32::from(!found))
}
