#!/usr/bin/env bash
# Every check of this repository, cheapest first; CI runs the same. A fresh machine needs git, cargo, a C compiler and Go, and
# the network for the package registries alone.
#
# usage: check.sh [--fast | --long]
#   --fast  without the real control plane, the release build and the demo's capture
#   --long  all charts of the corpus, 2,000 mutations, and a whole release, whose program must come out the same in another folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

mode=${1:-}
case $mode in
  "" | --fast) ;;
  --long) export DRIFT_LONG=1 ;;
  *)
    sed -n 's/^# \{0,1\}//; 2,7p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

limit=15000000 # bytes of the release binary
scratch=$(mktemp -d)
build=
tidy() {
  if [ -n "$build" ]; then kill -- "-$build" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap tidy EXIT

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
has() { command -v "$1" >/dev/null 2>&1; }
lacks() { printf '  %s: %s\n' "$1" "$2" >>"$scratch/missing"; }

step "what is needed"
: >"$scratch/missing"
if ! has jq && has apt-get && [ "$(id -u)" = 0 ]; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq jq; } >"$scratch/apt.log" 2>&1 || cat "$scratch/apt.log" >&2
fi
has git || lacks git "install it with your system's packages"
has jq || lacks jq "install it with your system's packages (apt-get install jq, brew install jq)"
has cc || lacks cc "a C compiler and linker: install gcc or clang with your system's packages"
if has cargo; then
  for tool in fmt clippy; do
    cargo "$tool" --version >/dev/null 2>&1 && continue
    component=${tool/fmt/rustfmt}
    { has rustup && rustup component add "$component" >/dev/null 2>&1; } || lacks "$component" "rustup component add $component"
  done
else
  lacks cargo "install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or newer (https://rustup.rs)"
fi
if [ "$mode" != --fast ] && ! found=$(tests/control-plane/build.sh --find 2>&1); then
  if has go && has git; then
    # 13 minutes of work on a fresh machine: it runs beside what does not need it, in a process group of its own.
    set -m
    tests/control-plane/build.sh >"$scratch/control-plane.log" 2>&1 &
    build=$!
    set +m
    echo "the control plane for the tests is being built meanwhile (13 minutes on two cores, once)"
  else
    found=$(sed -n 's/^control plane: missing: //p' <<<"$found") # empty without git
    has go || lacks go "install Go $(sed -n 's/^go //p' tests/control-plane/kube/go.mod) or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a directory with ${found:-the control plane}"
  fi
fi
if [ -s "$scratch/missing" ]; then
  echo "missing:" >&2
  cat "$scratch/missing" >&2
  exit 1
fi

# tests NAME ARGUMENT...: runs `cargo test` and keeps its results for the closing line
tests() {
  step "$1"
  cargo test --locked "${@:2}" 2>&1 | tee -a "$scratch/tests.log"
}

step "format"
cargo fmt --check
step "lints"
cargo clippy --all-targets --locked -- -D warnings
tests "tests without the control plane" -- --skip real::
step "documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items --locked
if cargo deny --version >/dev/null 2>&1; then
  step "cargo deny" # without it the tests above have read deny.toml by themselves
  cargo deny --locked check bans licenses sources
fi

if [ "$mode" != --fast ]; then
  step "release build"
  cargo build --release --locked
  drift=$(cargo metadata --locked --no-deps --format-version 1 | jq -r .target_directory)/release/drift
  size=$(wc -c <"$drift")
  echo "$drift: $((size / 1000)) kB"
  if [ "$size" -ge $limit ]; then
    echo "the release binary has $size bytes, $limit are allowed" >&2
    exit 1
  fi

  # The release that the tests install by Helm, kubectl and krew.
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
  if [ "$mode" = --long ]; then
    step "a whole release, and its program once more in another folder"
    # release FOLDER ARGUMENT...: runs release.sh in a copy of this repository with a target folder of its own
    release() {
      mkdir "$1"
      git ls-files -z | xargs -0 tar -c | tar -x -C "$1"
      SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) env -u CARGO_TARGET_DIR -u DIST "$1/release.sh" "${@:2}"
      rm -rf "$1/target"
    }
    platform=$(./release.sh --platform)
    release "$scratch/one" "$version"
    release "$scratch/the other" --build "$version" "$platform"
    cmp "$scratch/one/dist/bin/$platform/drift" "$scratch/the other/dist/bin/$platform/drift"
    export DRIFT_DIST=$scratch/one/dist
  else
    step "a release of this build"
    export DRIFT_DIST=$scratch/dist
    DIST=$DRIFT_DIST ./release.sh --pack "$version" "$(./release.sh --platform)=$drift"
  fi

  if [ -n "$build" ]; then
    step "the control plane's programs"
    wait "$build" || { cat "$scratch/control-plane.log" >&2; exit 1; }
    build=
    cat "$scratch/control-plane.log"
  fi
  tests "tests on the real control plane" --test main real::

  if [ -x examples/make-nucleus.sh ]; then
    step "the demo's capture, made anew"
    # What two runs never have in common.
    normal='walk(if type == "object" then del(.startedAt, .finishedAt, .lastDeployed, .time, .server)
      elif type == "string" and test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$") then "a time" else . end)'
    report() { { "$drift" -A --from "$1" -o json || [ $? = 1 ]; } | jq -S "$normal"; }
    cargo test --locked --quiet --test with-cluster -- examples/make-nucleus.sh "$scratch/nucleus.drift"
    report examples/nucleus.drift >"$scratch/committed.json"
    report "$scratch/nucleus.drift" >"$scratch/new.json"
    if ! diff -u "$scratch/committed.json" "$scratch/new.json"; then
      echo "examples/nucleus.drift is not what the program captures: cargo test --test with-cluster -- examples/make-nucleus.sh examples/nucleus.drift" >&2
      exit 1
    fi
  fi
fi

# The closing line: all runs of `cargo test` above, as cargo sums up one.
awk -v seconds="$SECONDS" '/^test result: / {
  for (i = 1; i <= NF; i++) if ($(i + 1) ~ /^(passed|failed|ignored|measured);/) { split($(i + 1), word, ";"); n[word[1]] += $i }
} END {
  printf "\ntest result: %s. %d passed; %d failed; %d ignored; %d measured; 0 filtered out; finished in %d.00s\n",
    n["failed"] ? "FAILED" : "ok", n["passed"], n["failed"], n["ignored"], n["measured"], seconds
}' "$scratch/tests.log"
