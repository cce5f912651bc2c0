//! The answer to a release name that is not there: names that look like it.

use std::collections::BTreeSet;

/// Names shown at most.
const SHOWN: usize = 5;

/// One line: which release is not there, where, and which names were close.
pub(crate) fn not_found(name: &str, namespace: Option<&str>, known: &BTreeSet<String>) -> String {
    let place = namespace.map_or_else(|| "any namespace".to_owned(), |namespace| format!("namespace {namespace:?}"));
    let close = similar(name, known);
    let hint = match (close.as_slice(), known.len()) {
        ([], 0) => "there are no releases; name another namespace with -n, or look in all with -A".to_owned(),
        ([], _) => format!("there are {}", listed(&known.iter().map(String::as_str).collect::<Vec<_>>())),
        (names, _) => format!("did you mean {}?", listed(names)),
    };
    format!("release {name:?} not found in {place}: {hint}")
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Names within a third of the name's length in edits, or that contain it or are contained; nearest first.
fn similar<'k>(name: &str, known: &'k BTreeSet<String>) -> Vec<&'k str> {
    let limit = (name.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = known
        .iter()
        .map(|other| (distance(name, other), other.as_str()))
        .filter(|(edits, other)| *edits <= limit || (name.len() > 2 && (other.contains(name) || name.contains(other))))
        .collect();
    close.sort_unstable();
    close.into_iter().map(|(_, other)| other).collect()
}

/// Levenshtein's distance, in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in a.chars().enumerate() {
        let mut corner = line;
        let mut left = line + 1;
        for (place, to) in row.iter_mut().skip(1).zip(&b) {
            let change = corner + usize::from(from != *to);
            corner = *place;
            left = change.min(corner + 1).min(left + 1);
            *place = left;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_offered_nearest_first() {
        let known: BTreeSet<String> = ["nucleus", "nucleus-db", "atlas"].map(str::to_owned).into();
        assert_eq!(similar("nuclues", &known), ["nucleus"]);
        assert_eq!(similar("nucleus-d", &known), ["nucleus-db", "nucleus"]);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "ab"), 2);
        assert_eq!(
            not_found("zeta", Some("prod"), &known),
            r#"release "zeta" not found in namespace "prod": there are atlas, nucleus, nucleus-db"#
        );
    }
}
