//! What is said about a finding in a word or two: what, who, when, why, how many. Knows nothing of where it is printed.

use jiff::Timestamp;

use crate::drift::finding::{Cause, Change, Finding, Manager, Verdict};

use super::json;
use super::line::{ALARM, CYAN, YELLOW};

/// One character for what has changed, and its colour.
pub(crate) fn mark(change: Change) -> (&'static str, anstyle::Style) {
    match change {
        Change::Changed => ("~", YELLOW),
        Change::Added | Change::Orphan => ("+", YELLOW),
        Change::Removed => ("-", YELLOW),
        Change::Missing => ("!", ALARM),
        Change::Unreadable => ("?", CYAN),
    }
}

/// What has become of an object as a whole: it stands where a path would.
pub(crate) fn whole(change: Change) -> &'static str {
    match change {
        Change::Missing => "missing",
        Change::Orphan => "left over",
        Change::Unreadable => "not read",
        Change::Changed | Change::Added | Change::Removed => json::change(change),
    }
}

/// Name and subresource: `kubectl (scale)`.
pub(crate) fn manager(held: &Manager) -> String {
    match &held.subresource {
        Some(subresource) => format!("{} ({subresource})", held.name),
        None => held.name.clone(),
    }
}

/// The verdict and its cause, unless the change tells it all.
pub(crate) fn why(finding: &Finding) -> String {
    let verdict = json::verdict(finding.verdict);
    match (finding.verdict, finding.cause, &finding.rule) {
        (
            Verdict::Drift,
            Some(cause @ (Cause::ForgedName | Cause::AppliedDifferently | Cause::LeftBehind | Cause::Unattributed)),
            _,
        ) => json::cause(cause).to_owned(),
        (Verdict::Drift, ..) => String::new(),
        (Verdict::Unverified, None, _) if finding.change == Change::Unreadable => String::new(),
        (Verdict::Ignored, _, Some(rule)) => format!("{verdict}: {rule}"),
        (_, Some(cause), _) => format!("{verdict}: {}", json::cause(cause)),
        (_, None, _) => verdict.to_owned(),
    }
}

/// As kubectl prints ages (k8s.io/apimachinery `pkg/util/duration`, `HumanDuration`): `90s`, `5m30s`, `3h12m`, `8d`.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    // Clocks of servers and terminals differ a little.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let with = |number: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{number}{unit}") } else { format!("{number}{unit}{rest}{small}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => with(days, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{days}d"),
        () if hours < 24 * 365 * 8 => with(years, "y", days % 365, "d"),
        () => format!("{years}y"),
    }
}

/// `1 byte`, `2 bytes`.
pub(crate) fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample::time;

    #[test]
    fn ages_are_kubectl_s() {
        let now = time("2026-11-30T10:00:00Z");
        for (then, want) in [
            ("2026-11-30T10:00:01Z", "0s"),
            ("2026-11-30T10:05:00Z", "<invalid>"),
            ("2026-11-30T09:58:01Z", "119s"),
            ("2026-11-30T09:55:00Z", "5m"),
            ("2026-11-30T09:54:30Z", "5m30s"),
            ("2026-11-30T09:48:00Z", "12m"),
            ("2026-11-30T06:48:00Z", "3h12m"),
            ("2026-11-30T01:00:00Z", "9h"),
            ("2026-11-27T08:00:00Z", "3d2h"),
            ("2026-11-20T10:00:00Z", "10d"),
            ("2024-11-20T10:00:00Z", "2y10d"),
            ("2010-11-20T10:00:00Z", "16y"),
        ] {
            assert_eq!(age(now, time(then)), want, "{then}");
        }
    }
}
