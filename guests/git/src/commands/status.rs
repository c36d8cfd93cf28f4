//! `git status`.

use crate::change::Change;
use crate::fail::{Res, fatal};
use crate::files::text;
use crate::index::Index;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::refs;
use crate::remote;
use crate::repo::Repo;
use crate::status::{Status, seen_from, unmerged_words};
use crate::walk;
use crate::worktree::Untracked;

const READER: Reader = Reader {
    command: "status",
    usage: "git status [<options>] [--] [<pathspec>...]",
    list: "v|verbose! s|short b|branch show-stash! ahead-behind porcelain? long z|null u|untracked-files? ignored? \
           ignore-submodules? column?! no-renames renames M|find-renames?",
    in_order: false,
};

pub fn untracked_mode(repo: &Repo, options: &Parsed) -> Res<Option<Untracked>> {
    let given = match options.state("untracked-files") {
        Some(true) => Some(options.text("untracked-files").unwrap_or_else(|| "all".to_owned())),
        Some(false) => Some("no".to_owned()),
        None => repo.config.text("status.showuntrackedfiles"),
    };
    Ok(match given.as_deref() {
        None | Some("normal" | "true") => Some(Untracked::Normal),
        Some("all") => Some(Untracked::All),
        Some("no" | "false") => None,
        Some(mode) => fatal!("Invalid untracked files mode '{mode}'"),
    })
}

pub fn status(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let paths = Pathspec::new(repo, &options.args)?;
    let mut index = Index::load(repo)?;
    let status = Status::find(repo, &index, &paths, untracked_mode(repo, &options)?)?;
    refresh(repo, &mut index);
    let porcelain = options.state("porcelain").unwrap_or(false);
    let version = options.text("porcelain").unwrap_or_else(|| "v1".to_owned());
    let zero = options.has("null");
    let short = options.has("short")
        || (repo.config.bool("status.short", false) && !options.has("long") && !porcelain);
    let branch =
        options.state("branch").unwrap_or(!porcelain && short && repo.config.bool("status.branch", false));
    let show = Show { repo, zero, relative: !porcelain && !zero };
    if porcelain && matches!(version.as_str(), "v2" | "2") {
        show.second(&status, branch, options.has("ignored"))?;
    } else if porcelain && !matches!(version.as_str(), "v1" | "1") {
        fatal!("unsupported porcelain version '{version}'");
    } else if short || porcelain || zero {
        show.first(&status, branch, options.has("ignored"))?;
    } else {
        out::put(status.describe(repo, options.has("ignored"), crate::status::For::Status)?);
    }
    Ok(0)
}

/// Remembers what files look like that were found unchanged, so that they need not be read next time.
fn refresh(repo: &Repo, index: &mut Index) {
    if super::add::refresh(repo, index).is_ok_and(|changed| changed) {
        // Somebody else's lock is no reason to fail: it is only a memory.
        let _ = index.save(repo);
    }
}

struct Show<'a> {
    repo: &'a Repo,
    zero: bool,
    relative: bool,
}

impl Show<'_> {
    fn path(&self, path: &[u8]) -> Vec<u8> {
        match (self.zero, self.relative) {
            (true, _) => path.to_vec(),
            (false, true) => quote::path_or_spaced(&seen_from(self.repo, path)),
            (false, false) => quote::path_or_spaced(path),
        }
    }

    fn end(&self) -> &'static [u8] {
        if self.zero { b"\0" } else { b"\n" }
    }

    /// `-s` and `--porcelain`.
    fn first(&self, status: &Status, branch: bool, ignored: bool) -> Res<()> {
        if branch {
            self.branch_line(status)?;
        }
        for (path, [x, y], staged) in rows(status) {
            out::put([x, y, b' ']);
            match staged.filter(|change| matches!(change.status, b'R' | b'C')) {
                Some(change) if self.zero => {
                    out::put([&change.new.path[..], b"\0", &change.old.path, b"\0"].concat());
                }
                Some(change) => {
                    out::put(
                        [&self.path(&change.old.path)[..], b" -> ", &self.path(&change.new.path), b"\n"]
                            .concat(),
                    );
                }
                None => out::put([&self.path(&path)[..], self.end()].concat()),
            }
        }
        let others = status.untracked.iter().map(|path| ("?? ", path));
        let hidden = status.ignored.iter().map(|path| ("!! ", path)).filter(|_| ignored);
        for (sign, path) in others.chain(hidden) {
            out::put([sign.as_bytes(), &self.path(path), self.end()].concat());
        }
        Ok(())
    }

    fn branch_line(&self, status: &Status) -> Res<()> {
        let mut line = match (&status.branch, status.head) {
            (Some(branch), None) => format!("## No commits yet on {}", text(branch)),
            (Some(branch), Some(_)) => format!("## {}", text(branch)),
            (None, _) => "## HEAD (no branch)".to_owned(),
        };
        if let Some(branch) = &status.branch
            && let Some(upstream) = remote::upstream(self.repo, branch)
        {
            line += &format!("...{}", text(refs::short(&upstream)));
            match (status.head, refs::resolve(self.repo, &upstream)?) {
                (Some(ours), Some(theirs)) => {
                    line += &match walk::ahead_behind(self.repo, &ours, &theirs)? {
                        (0, 0) => String::new(),
                        (ahead, 0) => format!(" [ahead {ahead}]"),
                        (0, behind) => format!(" [behind {behind}]"),
                        (ahead, behind) => format!(" [ahead {ahead}, behind {behind}]"),
                    };
                }
                (_, None) => line += " [gone]",
                _ => {}
            }
        }
        out::put([line.as_bytes(), self.end()].concat());
        Ok(())
    }

    /// `--porcelain=v2`.
    fn second(&self, status: &Status, branch: bool, ignored: bool) -> Res<()> {
        if branch {
            self.second_header(status)?;
        }
        let index = Index::load(self.repo)?;
        let head = crate::index::flatten(&self.repo.odb, &self.repo.head_tree()?)?;
        for (path, [x, y], staged) in rows(status).into_iter().filter(|(_, [x, y], _)| !is_unmerged(*x, *y)) {
            let dot = |sign: u8| if sign == b' ' { '.' } else { char::from(sign) };
            let unstaged = status.unstaged.iter().find(|change| change.path() == path);
            let entry = index.get(&path).filter(|entry| !entry.intent_to_add);
            let old_path = staged
                .filter(|change| matches!(change.status, b'R' | b'C'))
                .map_or(&path, |change| &change.old.path);
            let (head_mode, head_oid) = head.get(old_path).copied().unwrap_or_default();
            let (index_mode, index_oid) =
                entry.map_or((0, Default::default()), |entry| (entry.mode, entry.oid));
            let work_mode = match unstaged {
                Some(change) => change.new.mode,
                None => index_mode,
            };
            let fields = format!(
                "{}{} N... {head_mode:06o} {index_mode:06o} {work_mode:06o} {head_oid} {index_oid}",
                dot(x),
                dot(y)
            );
            match staged.filter(|change| matches!(change.status, b'R' | b'C')) {
                Some(change) => {
                    let gap: &[u8] = if self.zero { b"\0" } else { b"\t" };
                    let score = format!("2 {fields} {}{} ", char::from(change.status), change.score);
                    out::put(
                        [
                            score.as_bytes(),
                            &self.plain(&path),
                            gap,
                            &self.plain(&change.old.path),
                            self.end(),
                        ]
                        .concat(),
                    );
                }
                None => out::put([b"1 ", fields.as_bytes(), b" ", &self.plain(&path), self.end()].concat()),
            }
        }
        self.second_unmerged(status, &index);
        for path in &status.untracked {
            out::put([b"? ", &self.plain(path)[..], self.end()].concat());
        }
        for path in status.ignored.iter().filter(|_| ignored) {
            out::put([b"! ", &self.plain(path)[..], self.end()].concat());
        }
        Ok(())
    }

    fn second_header(&self, status: &Status) -> Res<()> {
        let end = text(self.end());
        let oid = status.head.map_or("(initial)".to_owned(), |head| head.hex());
        let name = status.branch.as_ref().map_or("(detached)".to_owned(), |branch| text(branch));
        out::put(format!("# branch.oid {oid}{end}# branch.head {name}{end}"));
        let Some(upstream) = status.branch.as_ref().and_then(|branch| remote::upstream(self.repo, branch))
        else {
            return Ok(());
        };
        out::put(format!("# branch.upstream {}{end}", text(refs::short(&upstream))));
        if let (Some(ours), Some(theirs)) = (status.head, refs::resolve(self.repo, &upstream)?) {
            let (ahead, behind) = walk::ahead_behind(self.repo, &ours, &theirs)?;
            out::put(format!("# branch.ab +{ahead} -{behind}{end}"));
        }
        Ok(())
    }

    fn second_unmerged(&self, status: &Status, index: &Index) {
        for (path, stages) in &status.unmerged {
            let (_, letters) = unmerged_words(*stages);
            let of = |stage: u8| {
                index
                    .position(path, stage)
                    .map_or((0, Default::default()), |at| (index.entries[at].mode, index.entries[at].oid))
            };
            let (one, two, three) = (of(1), of(2), of(3));
            let work = crate::worktree::stat(self.repo, path).map_or(0, |stat| crate::index::mode_of(&stat));
            let fields = format!(
                "u {letters} N... {:06o} {:06o} {:06o} {work:06o} {} {} {} ",
                one.0, two.0, three.0, one.1, two.1, three.1
            );
            out::put([fields.as_bytes(), &self.plain(path), self.end()].concat());
        }
    }

    fn plain(&self, path: &[u8]) -> Vec<u8> {
        if self.zero { path.to_vec() } else { quote::path(path) }
    }
}

fn is_unmerged(x: u8, y: u8) -> bool {
    x == b'U' || y == b'U' || (x, y) == (b'A', b'A') || (x, y) == (b'D', b'D')
}

/// A line for each path with a change: its two letters, and what is staged.
fn rows(status: &Status) -> Vec<(Vec<u8>, [u8; 2], Option<&Change>)> {
    let mut rows: std::collections::BTreeMap<Vec<u8>, ([u8; 2], Option<&Change>)> = Default::default();
    for change in &status.staged {
        rows.insert(change.path().to_vec(), ([change.status, b' '], Some(change)));
    }
    for change in &status.unstaged {
        rows.entry(change.path().to_vec()).or_insert(([b' ', b' '], None)).0[1] = change.status;
    }
    for (path, stages) in &status.unmerged {
        let (_, letters) = unmerged_words(*stages);
        rows.insert(path.clone(), ([letters.as_bytes()[0], letters.as_bytes()[1]], None));
    }
    rows.into_iter().map(|(path, (letters, change))| (path, letters, change)).collect()
}
