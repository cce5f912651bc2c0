//! What a configuration file says, and what each of its ignore rules covers now. Knows nothing of how that was found.

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;

use super::escape::escape;
use super::words;
use crate::drift::rules::{Hit, Rule};
use crate::settings::Settings;

/// Findings shown for one rule at most.
const SHOWN: usize = 20;

/// `FILE is valid: 2 ignore rules, 1 expected release`
pub(crate) fn valid(out: &mut dyn Write, file: &Path, settings: &Settings) -> io::Result<()> {
    let rules = &settings.rules;
    let parts = [
        (rules.ignore.len(), "ignore rule"),
        (rules.writers.len(), "more known writer"),
        (rules.sensitive.len(), "sensitive value"),
        (settings.releases.len(), "expected release"),
        (settings.webhook.iter().count(), "webhook"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| words::count(*count, what)).collect();
    let what = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    writeln!(out, "{} is valid{what}", escape(&file.display().to_string()))
}

/// Each ignore rule with the findings that it covers.
pub(crate) fn coverage(out: &mut dyn Write, rules: &[Rule], hits: &[Hit], now: Timestamp) -> io::Result<()> {
    for (place, rule) in rules.iter().enumerate() {
        writeln!(out, "\nline {}: {} ({})", rule.line, escape(&rule.title()), escape(&rule.reason))?;
        if let Some(expiry) = rule.expires.as_ref().filter(|_| !rule.is_alive(now)) {
            writeln!(out, "  expired on {}: it covers nothing any more", escape(&expiry.text))?;
            continue;
        }
        let own = |covers: bool| hits.iter().filter(move |hit| hit.rule == place && hit.covers == covers);
        for hit in own(true).take(SHOWN) {
            writeln!(out, "  {}", line(hit))?;
        }
        match (own(true).count(), own(false).next()) {
            (0, None) => writeln!(out, "  covers nothing now")?,
            (0, Some(hit)) => {
                writeln!(out, "  covers nothing now; reported as one, and the rule is inside it: {}", line(hit))?
            }
            (covered, _) if covered > SHOWN => writeln!(out, "  and {} more", covered - SHOWN)?,
            _ => {}
        }
    }
    out.flush()
}

/// `prod/nucleus   Deployment/web   .spec.replicas`
fn line(hit: &Hit) -> String {
    let what = match &hit.path {
        Some(path) => path.to_string(),
        None => super::json::change(hit.change).to_owned(),
    };
    let text = format!("{}/{}   {}   {what}", hit.release.namespace, hit.release.name, hit.object);
    escape(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::finding::Change;
    use crate::drift::object::{FieldPath, Gvk, ObjectRef};
    use crate::drift::release::ReleaseKey;

    fn hit(rule: usize, path: Option<&[&str]>, covers: bool) -> Hit {
        Hit {
            rule,
            covers,
            release: ReleaseKey { namespace: "prod".into(), name: "nucleus".into() },
            object: ObjectRef {
                gvk: Gvk::new("apps/v1", "Deployment"),
                namespace: Some("prod".into()),
                name: "web".into(),
            },
            path: path.map(FieldPath::of_fields),
            change: Change::Missing,
        }
    }

    #[test]
    fn every_rule_says_what_it_covers() {
        let text = "ignore:
- {path: .spec.replicas, kinds: [Deployment.apps], reason: scaled by others}
- {reason: gone for now, names: [web]}
- {path: .spec.args.deep, reason: inside}
- {path: .data, reason: \"odd \\e[2Jone\"}
- {path: .data, reason: over, expires: 2021-06-30}
releases:
- {namespace: prod, name: nucleus}
";
        let settings = Settings::parse(text).unwrap();
        let hits =
            [hit(0, Some(&["spec", "replicas"]), true), hit(1, None, true), hit(2, Some(&["spec", "args"]), false)];
        let mut out = Vec::new();
        valid(&mut out, Path::new("c.yaml"), &settings).unwrap();
        coverage(&mut out, &settings.rules.ignore, &hits, "2026-11-30T10:00:00Z".parse().unwrap()).unwrap();
        let want = "c.yaml is valid: 5 ignore rules, 1 expected release

line 2: .spec.replicas of Deployment.apps (scaled by others)
  prod/nucleus   Deployment/web   .spec.replicas

line 3: whole objects (gone for now)
  prod/nucleus   Deployment/web   missing

line 4: .spec.args.deep (inside)
  covers nothing now; reported as one, and the rule is inside it: prod/nucleus   Deployment/web   .spec.args

line 5: .data (odd \\x1b[2Jone)
  covers nothing now

line 6: .data (over)
  expired on 2021-06-30: it covers nothing any more
";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn many_findings_are_counted() {
        let settings = Settings::parse("ignore: [{path: .spec, reason: x}]").unwrap();
        let hits = vec![hit(0, Some(&["spec"]), true); SHOWN + 3];
        let mut out = Vec::new();
        coverage(&mut out, &settings.rules.ignore, &hits, "2026-11-30T10:00:00Z".parse().unwrap()).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with("  and 3 more\n"));
    }
}
