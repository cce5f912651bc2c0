#!/usr/bin/env bash
# What a whole-cluster check costs beside fetching the same answers with plain parallel GETs, and beside one kubectl per object.
# Everything in one run on one machine, so that the ratios mean something; the times alone do not.
#
# usage: cargo build --release && cargo test --test with-cluster -- bench/floor.sh target/release/drift
set -euo pipefail
drift=$(realpath "${1:?usage: floor.sh PROGRAM}")
charts=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../tests/data/charts")
runs=7
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache

for chart in "$charts"/*/; do
  name=$(basename "$chart")
  mkdir -p "$work/$name/templates"
  printf 'apiVersion: v2\nname: %s\nversion: 1.0.0\n' "$name" >"$work/$name/Chart.yaml"
  gzip -dc "$chart/manifest.yaml.gz" >"$work/$name/manifest.yaml"
  echo '{{ .Files.Get "manifest.yaml" }}' >"$work/$name/templates/all.yaml"
  if [ -f "$chart/crds.yaml.gz" ]; then gzip -dc "$chart/crds.yaml.gz" | kubectl apply --server-side -f - >/dev/null 2>&1; fi
  kubectl create namespace "$name" >/dev/null
  helm install "$name" "$work/$name" -n "$name" >/dev/null 2>&1
done

# least MILLISECONDS-OF COMMAND...: the quickest of some runs, as the machine may be shared
least() {
  local best= start took
  for _ in $(seq $runs); do
    start=$(date +%s%N)
    "$@" >/dev/null 2>&1 || true
    took=$((($(date +%s%N) - start) / 1000000))
    if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
  done
  echo "$best"
}

"$drift" -A -q >/dev/null || true # fills the cache
"$drift" -A -v 2>&1 >/dev/null | sed -n 's/.* path=\([^ ]*\) .*/\1/p' >"$work/paths"
server=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
token=$(kubectl config view --raw -o jsonpath='{.users[0].user.token}')
while read -r path; do printf 'url = "%s%s"\noutput = /dev/null\n' "$server" "$path"; done <"$work/paths" >"$work/urls"
fetch() { curl --silent --insecure --globoff --parallel --parallel-max 8 --header "Authorization: Bearer $token" --config "$work/urls"; }

objects=$("$drift" -A -o json | jq '[.releases[].objects.total] | add')
floor=$(least fetch)
check=$(least "$drift" -A -q)
one=$(least kubectl get namespace default)
printf '%s objects, %s requests\n' "$objects" "$(wc -l <"$work/paths")"
printf 'plain GETs           %6s ms\n' "$floor"
printf 'drift -A             %6s ms   %s x the plain GETs\n' "$check" "$(jq -n "$check / $floor * 100 | round / 100")"
printf 'a kubectl per object %6s ms   %s x drift -A\n' "$((one * objects))" "$(jq -n "$one * $objects / $check | round")"
/usr/bin/env time -f 'peak memory of drift -A %M KB' "$drift" -A -q >/dev/null 2>"$work/time" || true
tail -n 1 "$work/time"
