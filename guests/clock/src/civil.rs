//! Dates and times of day as numbers, over all years that a second count reaches.

/// A moment: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    pub seconds: i64,
    pub nanos: i64,
}

impl When {
    /// A whole second.
    pub fn at(seconds: i64) -> When {
        When { seconds, nanos: 0 }
    }

    /// From nanoseconds since 1970.
    pub fn from_nanos(nanos: i64) -> When {
        When { seconds: nanos.div_euclid(1_000_000_000), nanos: nanos.rem_euclid(1_000_000_000) }
    }
}

/// A date and time of day as it is written, in no zone. Fields may lie outside their ranges until [`normal`] has been
/// at them.
///
/// [`normal`]: Civil::normal
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

pub(crate) const DAY: i64 = 86_400;

/// The most years that are reckoned with: beyond, a count of seconds would overflow.
const MOST: i64 = 200_000_000_000;

impl Civil {
    /// The seconds since 1970, were the zone UTC.
    pub fn seconds(&self) -> Option<i64> {
        if [self.year, self.month, self.day].iter().any(|field| field.abs() > MOST) {
            return None;
        }
        let time = self.hour.checked_mul(3600)?.checked_add(self.minute.checked_mul(60)?)?;
        let days = days_of(self.year, self.month, 1) + self.day - 1;
        days.checked_mul(DAY)?.checked_add(time)?.checked_add(self.second)
    }

    /// The date and time so many seconds after 1970 began, were the zone UTC.
    pub fn at(seconds: i64) -> Civil {
        let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        Civil { year, month, day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60 }
    }

    /// The same moment with every field in its range.
    pub fn normal(&self) -> Option<Civil> {
        self.seconds().map(Civil::at)
    }

    /// From 0 for Sunday.
    pub fn weekday(&self) -> i64 {
        (days_of(self.year, self.month, 1) + self.day - 1 + 4).rem_euclid(7)
    }

    /// Days from this date to another.
    pub fn days_until(&self, other: &Civil) -> i64 {
        days_of(other.year, other.month, other.day) - days_of(self.year, self.month, self.day)
    }

    /// From 1 for the first of January.
    pub fn day_of_year(&self) -> i64 {
        days_of(self.year, self.month, 1) + self.day - days_of(self.year, 1, 1)
    }
}

/// Days from 1970 to a date; the month may be any.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1;
    // Years that begin in March have their leap day last.
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days_are_each_others_inverse() {
        for days in (-1_000_000..3_000_000).step_by(367) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(19_782), (2024, 2, 29));
        assert_eq!(days_of(2023, 14, 1), days_of(2024, 2, 1));
    }
}
