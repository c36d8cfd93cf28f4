//! `git ls-remote`.

use crate::fail::Res;
use crate::files::text;
use crate::http;
use crate::options::Reader;
use crate::out;
use crate::pattern;
use crate::refs;
use crate::repo::{Global, Repo};
use crate::transport;

const READER: Reader = Reader {
    command: "ls-remote",
    usage: "git ls-remote [--heads] [--tags] [--refs] [--get-url] [--exit-code] [<repository> [<patterns>...]]",
    list: "h|heads t|tags refs get-url exit-code q|quiet symref! sort=! upload-pack=! exec=! o|server-option=!",
    in_order: false,
};

pub fn ls_remote(global: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let repo = Repo::find(global)?;
    let name = match (options.args.first(), &repo) {
        (Some(name), _) => text(name),
        (None, Some(repo)) => transport::usual_remote(repo)?,
        (None, None) => {
            return Err(crate::fail::Fail::Fatal("No remote configured to list refs from.".to_owned()));
        }
    };
    let known = repo.as_ref().and_then(|repo| transport::address(repo, &name));
    let address = known.unwrap_or_else(|| name.clone().into_bytes());
    if options.has("get-url") {
        out::bytes_line(&address);
        return Ok(0);
    }
    if options.args.is_empty() && !options.has("quiet") {
        out::complain(format!("From {}", text(&address)));
    }
    let names = match http::is_address(&address) {
        true => http::discover(&address, "git-upload-pack", None)?.into_names(),
        false => local(&transport::must_open(&address, None)?)?,
    };
    let mut found = false;
    for (name, oid) in names {
        let wanted = match (options.has("heads"), options.has("tags")) {
            (false, false) => true,
            (heads, tags) => {
                heads && name.starts_with(b"refs/heads/") || tags && name.starts_with(b"refs/tags/")
            }
        };
        let plain = !options.has("refs") || name != b"HEAD" && !name.ends_with(b"^{}");
        let patterns = options.args.get(1..).unwrap_or(&[]);
        // A pattern fits whole names at the end of a name.
        let fits = |pattern: &Vec<u8>| {
            let whole = [b"/", &name[..]].concat();
            pattern::matches(&[b"*/", &pattern[..]].concat(), &whole, false, false)
        };
        if wanted && plain && (patterns.is_empty() || patterns.iter().any(fits)) {
            out::bytes_line(&[oid.hex().as_bytes(), b"\t", &name].concat());
            found = true;
        }
    }
    Ok(if options.has("exit-code") && !found { 2 } else { 0 })
}

fn local(repo: &Repo) -> Res<Vec<(Vec<u8>, crate::hash::Oid)>> {
    let mut names: Vec<_> = repo.head()?.map(|oid| (b"HEAD".to_vec(), oid)).into_iter().collect();
    for (name, oid) in refs::list(repo, b"refs/")? {
        let target = repo.odb.peel(&oid)?.0;
        names.push((name.clone(), oid));
        if target != oid {
            names.push(([&name[..], b"^{}"].concat(), target));
        }
    }
    Ok(names)
}
