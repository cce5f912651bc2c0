//! A Deployment `web` as text, for the manifests of tests. Knows nothing of the containers in it.

/// `web!(replicas: 2, containers)`, or `web!(containers)` where it does not say how many. The containers are YAML, in flow
/// style or in lines of their own, without a newline at the end. A macro, since `concat!` takes no constants.
macro_rules! web {
    ($(replicas: $replicas:literal,)? $containers:literal) => {
        concat!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n",
            $("  replicas: ", $replicas, "\n",)?
            "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n",
            "    spec:\n      containers: ",
            $containers,
            "\n"
        )
    };
}

pub(crate) use web;
