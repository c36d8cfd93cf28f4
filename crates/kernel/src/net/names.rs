//! Names of hosts. Those of the sandbox itself are loopback addresses; any other stands for a placeholder address, by which
//! the kernel knows the name again when a guest connects to it.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wardian_vfs::{Errno, Result};

use super::Network;

/// The longest name of a host.
pub(crate) const LONGEST_NAME: u32 = 253;
/// The most addresses that a look-up returns.
pub(crate) const MOST_ADDRESSES: usize = 2;
/// Names that are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 4096;
/// 198.18.0.0/15, which no real host has.
const PLACEHOLDERS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// Placeholders start after those that stand for the sandbox.
const FIRST: u32 = 256;
const LAST: u32 = (1 << 17) - 2;
/// The name of the machine itself.
const OWN: &str = "wardian";

#[derive(Default)]
pub(super) struct Names {
    by_name: HashMap<String, u32>,
    by_number: HashMap<u32, String>,
    /// From the oldest to the newest.
    order: VecDeque<u32>,
    last: u32,
}

pub(super) fn is_placeholder(ip: IpAddr) -> bool {
    number(ip).is_some()
}

fn number(ip: IpAddr) -> Option<u32> {
    match super::address::canonical(ip) {
        IpAddr::V4(ip) => {
            u32::from(ip).checked_sub(u32::from(PLACEHOLDERS)).filter(|number| *number <= LAST + 1)
        }
        IpAddr::V6(_) => None,
    }
}

impl Names {
    fn placeholder(&mut self, name: &str) -> Ipv4Addr {
        let number = match self.by_name.get(name) {
            Some(number) => *number,
            None => self.remember(name),
        };
        Ipv4Addr::from(u32::from(PLACEHOLDERS) + number)
    }

    fn remember(&mut self, name: &str) -> u32 {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
            && let Some(name) = self.by_number.remove(&oldest)
        {
            self.by_name.remove(&name);
        }
        // Numbers come round only after all others: an address kept by a guest does not soon mean another name.
        self.last = if (FIRST..LAST).contains(&self.last) { self.last + 1 } else { FIRST };
        self.by_name.insert(name.to_owned(), self.last);
        self.by_number.insert(self.last, name.to_owned());
        self.order.push_back(self.last);
        self.last
    }
}

fn is_own(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain" || name == OWN
}

impl Network {
    /// Returns the addresses of a host. ENOENT: there is no such name; EACCES: it may not be looked up.
    pub(crate) fn look_up(&self, name: &[u8]) -> Result<Vec<IpAddr>> {
        let name = std::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
        if let Ok(ip) = name.parse::<IpAddr>() {
            return Ok(vec![ip]);
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name.is_empty() || name.len() > LONGEST_NAME as usize || name.contains(char::is_whitespace) {
            return Err(Errno::ENOENT);
        }
        if is_own(&name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        self.outside.as_ref().ok_or(Errno::EACCES)?.look_up(&name)?;
        Ok(vec![self.names.lock().placeholder(&name).into()])
    }

    /// Returns the name that a placeholder stands for.
    pub(crate) fn name_of(&self, ip: IpAddr) -> Option<String> {
        self.names.lock().by_number.get(&number(ip)?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_addresses_until_too_many_are_remembered() {
        let mut names = Names::default();
        let first = names.placeholder("a.example");
        assert_eq!(first, Ipv4Addr::new(198, 18, 1, 0));
        assert_eq!(names.placeholder("a.example"), first);
        for count in 0..REMEMBERED {
            names.placeholder(&format!("{count}.example"));
        }
        assert_eq!(
            (names.by_name.len(), names.by_number.len(), names.order.len()),
            (REMEMBERED, REMEMBERED, REMEMBERED)
        );
        assert_ne!(names.placeholder("a.example"), first);
    }

    #[test]
    fn every_placeholder_is_in_its_network() {
        let mut names = Names { last: LAST - 1, ..Names::default() };
        assert_eq!(names.placeholder("a"), Ipv4Addr::new(198, 19, 255, 254));
        assert_eq!(names.placeholder("b"), Ipv4Addr::new(198, 18, 1, 0));
        assert!(is_placeholder("198.19.255.255".parse().expect("an address")));
        assert!(!is_placeholder("198.20.0.0".parse().expect("an address")));
        assert!(!is_placeholder("198.17.255.255".parse().expect("an address")));
    }
}
