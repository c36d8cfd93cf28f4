//! Other repositories: where they are, and which of their names are followed here.

use crate::files::text;
use crate::repo::Repo;

/// The name that a branch follows: `refs/remotes/origin/main`, or a branch of this repository.
pub fn upstream(repo: &Repo, branch: &[u8]) -> Option<Vec<u8>> {
    let branch = text(branch);
    let remote = repo.config.text(&format!("branch.{branch}.remote"))?;
    let merge = repo.config.get(&format!("branch.{branch}.merge"))?;
    if remote == "." {
        return Some(merge);
    }
    let fetch = repo.config.all(format!("remote.{remote}.fetch").as_bytes());
    fetch.iter().find_map(|spec| Refspec::parse(spec)?.map(&merge))
}

/// What is fetched or pushed to where.
#[derive(Clone, Debug)]
pub struct Refspec {
    pub force: bool,
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl Refspec {
    pub fn parse(text: &[u8]) -> Option<Refspec> {
        let (force, rest) = text.strip_prefix(b"+").map_or((false, text), |rest| (true, rest));
        let colon = rest.iter().position(|&byte| byte == b':');
        let from = rest[..colon.unwrap_or(rest.len())].to_vec();
        let to = colon.map_or(Vec::new(), |at| rest[at + 1..].to_vec());
        Some(Refspec { force, from, to })
    }

    /// What a name there is called here, if it is fetched.
    pub fn map(&self, name: &[u8]) -> Option<Vec<u8>> {
        let star = |pattern: &[u8]| pattern.iter().position(|&byte| byte == b'*');
        match (star(&self.from), star(&self.to)) {
            (Some(from), Some(to)) => {
                let middle = name.strip_prefix(&self.from[..from])?.strip_suffix(&self.from[from + 1..])?;
                Some([&self.to[..to], middle, &self.to[to + 1..]].concat())
            }
            _ => (self.from == name).then(|| self.to.clone()),
        }
    }
}
