//! Candidates for completion that only a cluster or a kubeconfig knows. Reads little, and knows nothing of shells.

use crate::cluster::Cluster;
use crate::cluster::bundle::Bundle;
use crate::cluster::client::Client;
use crate::cluster::connect;
use crate::complete::{Ask, Candidate};
use crate::config::{Config, Namespaces};
use crate::drift::release::{History, RecordMeta};

/// What answers `ask`; `None` where that cannot be told, for whatever reason.
pub(crate) async fn candidates(config: &Config, ask: &Ask) -> Option<Vec<Candidate>> {
    if *ask == Ask::Contexts {
        let names = connect::contexts(&config.target).ok()?;
        return Some(names.into_iter().map(|name| Candidate::new(name, "")).collect());
    }
    let client = match &config.from {
        Some(file) => Client::replay(Bundle::open(file).ok()?),
        None => Client::connect(&config.target).await.ok()?,
    };
    let cluster = Cluster::new(client, None, 1);
    let only = match ask {
        Ask::Namespaces => {
            let names = cluster.namespaces().await.ok()?;
            return Some(names.into_iter().map(|name| Candidate::new(name, "")).collect());
        }
        Ask::Revisions(release) => Some(release.as_str()),
        Ask::Releases(_) | Ask::Contexts => None,
    };
    let namespace = match &config.scope.namespaces {
        Namespaces::All => None,
        Namespaces::One(Some(namespace)) => Some(namespace.as_str()),
        Namespaces::One(None) => Some(cluster.client().default_namespace()),
    };
    let records = cluster.records(config.scope.storage, namespace, only).await.ok()?.records;
    let histories = History::group(records);
    let found = match ask {
        Ask::Releases(there) => {
            let mut found: Vec<Candidate> = Vec::new();
            for history in histories.iter().filter(|history| !there.contains(&history.key.name)) {
                let newest = history.newest();
                let place = if namespace.is_none() { format!("{}: ", history.key.namespace) } else { String::new() };
                let help = format!("{place}revision {}, {}", newest.revision, status(newest));
                match found.iter_mut().find(|one| one.value == history.key.name) {
                    Some(one) => one.help.push_str(&format!("; {help}")),
                    None => found.push(Candidate::new(history.key.name.clone(), help)),
                }
            }
            found
        }
        Ask::Revisions(_) => {
            let records = histories.first().map(|history| history.records().collect::<Vec<_>>()).unwrap_or_default();
            let newest_first = records.into_iter().rev();
            newest_first.map(|record| Candidate::new(record.revision.to_string(), status(record))).collect()
        }
        Ask::Namespaces | Ask::Contexts => Vec::new(),
    };
    Some(found)
}

/// As Helm's label says it: the payload is not read for this.
fn status(record: &RecordMeta) -> &str {
    record.labels.get("status").map_or("", String::as_str)
}
