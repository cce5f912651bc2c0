#!/bin/sh
# Puts the program where plugin.yaml expects it: bin/drift in the plugin's folder. Helm runs it after `helm plugin install`, and with
# `update` after `helm plugin update`; by hand it may be run at any time. In a release's archive the program is there already.
#
# It takes the first of: what is in bin/ already, the archive that $HELM_DRIFT_ARCHIVE names, a build in target/, an archive in dist/,
# the archive from the release page of the repository that the plugin was cloned from ($HELM_DRIFT_URL: another address with its
# files). Archives are held to SHA256SUMS beside them, or to $HELM_DRIFT_SHA256. Only the release page needs a network.
#
# Of Helm's variables it needs HELM_PLUGIN_DIR alone: Helm 4 gives hooks no more.
set -eu

say() { printf 'drift: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
name_of() { sed -n "s/^$2: *[\"']\{0,1\}\([^\"'# ]*\).*/\1/p" "$1/plugin.yaml" 2>/dev/null | head -n 1; }
# place FOLDER: its path with every link resolved but the last
place() { printf '%s/%s\n' "$(cd "$(dirname "$1")" && pwd -P)" "$(basename "$1")"; }

plugin=${HELM_PLUGIN_DIR:-$(dirname "$0")}
[ -f "$plugin/plugin.yaml" ] || fail "$plugin is not the plugin's folder: it has no plugin.yaml"
plugin=$(cd "$plugin" && pwd)
plugin=$(place "$plugin")
version=$(name_of "$plugin" version)

# Two plugins of one name, and Helm loads none any more.
folders=${HELM_PLUGINS:-}
if [ -z "$folders" ] && [ -n "${HELM_PLUGIN_DIR:-}" ]; then folders=$(dirname "$plugin"); fi
rest=$folders:
while [ -n "${rest%:}" ]; do
  folder=${rest%%:*}
  rest=${rest#*:}
  for other in "$folder"/*; do
    if [ ! -f "$other/plugin.yaml" ] || [ "$(name_of "$other" name)" != drift ]; then continue; fi
    other=$(place "$other")
    [ "$other" != "$plugin" ] || continue
    say "another plugin is called \"drift\" too, and Helm loads no plugins while two have one name:"
    say "  $other ($(sed -n 's/^usage: *//p' "$other/plugin.yaml" | head -n 1))"
    if [ "${1:-}" != update ] && [ -L "$plugin" ]; then
      rm "$plugin"
    elif [ "${1:-}" != update ] && [ "$(dirname "$plugin")" = "$(dirname "$other")" ] && [ ! -e "$plugin/.git" ] && [ ! -e "$plugin/Cargo.toml" ]; then
      rm -r "$plugin"
    else
      say "to keep this one:  rm -r '$other'"
      say "to keep the other: rm -r '$plugin'"
      exit 1
    fi
    say "so this one has been taken out again. To have it instead: helm plugin uninstall drift, and install it once more"
    exit 1
  done
done

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) os=$(uname -s | tr '[:upper:]' '[:lower:]') ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) arch=$(uname -m) ;;
esac
platform=$os-$arch
archive=drift-$version-$platform.tgz
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# right FILE: whether it runs here and is of the plugin's version
right() { [ -x "$1" ] && [ "$("$1" version 2>/dev/null)" = "drift $version" ]; }

sum_of() {
  if has sha256sum; then sha256sum "$1"; elif has shasum; then shasum -a 256 "$1"; else openssl dgst -sha256 -r "$1"; fi | cut -d' ' -f1
}

# take ARCHIVE: holds it to its sum and takes the program out of it
take() {
  if [ -n "${HELM_DRIFT_SHA256:-}" ]; then
    wanted=$HELM_DRIFT_SHA256
  else
    sums=$(dirname "$1")/SHA256SUMS
    [ -f "$sums" ] || fail "$1 cannot be held to its sum: put the release's SHA256SUMS beside it, or its sum in HELM_DRIFT_SHA256"
    wanted=$(awk -v name="$(basename "$1")" '$2 == name || $2 == "*" name {print $1; exit}' "$sums")
    [ -n "$wanted" ] || fail "$sums has no sum for $(basename "$1")"
  fi
  found=$(sum_of "$1")
  [ "$found" = "$wanted" ] || fail "$1 is not the file that was released: its sum is $found, not $wanted"
  tar -xzf "$1" -C "$scratch" || fail "$1 cannot be unpacked"
  program=$scratch/drift/bin/drift # as in the archives for Helm 4
  [ -f "$program" ] || program=$scratch/bin/drift # and for Helm 3
  right "$program" || fail "$1 has no drift $version that runs on this machine ($platform)"
  mkdir -p "$plugin/bin"
  cp "$program" "$plugin/bin/.drift"
  mv -f "$plugin/bin/.drift" "$plugin/bin/drift"
}

# page: the address that the release's files are at, if any is known
page() {
  if [ -n "${HELM_DRIFT_URL:-}" ]; then
    echo "${HELM_DRIFT_URL%/}"
  elif [ -e "$plugin/.git" ] && has git; then
    # git's own way to write user and host, as in git@HOST:OWNER/NAME.git
    origin=$(git -C "$plugin" remote get-url origin 2>/dev/null | sed -E 's,^(ssh://)?git@([^:/]+)[:/],https://\2/,' || true)
    case $origin in
      https://*) origin=${origin%/}; echo "${origin%.git}/releases/download/v$version" ;;
    esac
  fi
}

fetch() {
  if has curl; then curl -fsSL --retry 2 -o "$2" "$1"; elif has wget; then wget -q -O "$2" "$1"; else fail "neither curl nor wget is there to fetch $1"; fi
}

built=${CARGO_TARGET_DIR:-$plugin/target}/release/drift
if [ -n "${HELM_DRIFT_ARCHIVE:-}" ]; then
  [ -f "$HELM_DRIFT_ARCHIVE" ] || fail "HELM_DRIFT_ARCHIVE: there is no file $HELM_DRIFT_ARCHIVE"
  take "$HELM_DRIFT_ARCHIVE"
elif right "$plugin/bin/drift"; then
  :
elif right "$built"; then
  mkdir -p "$plugin/bin"
  ln -sf "$built" "$plugin/bin/drift"
elif [ -f "$plugin/dist/$archive" ]; then
  take "$plugin/dist/$archive"
else
  address=$(page)
  if [ -n "$address" ] && fetch "$address/SHA256SUMS" "$scratch/SHA256SUMS" && fetch "$address/$archive" "$scratch/$archive"; then
    take "$scratch/$archive"
  else
    say "there is no drift $version for this machine ($platform) in $plugin/bin${address:+, nor at $address}."
    say "The plugin is in place and lacks the program alone. One of these gives it:"
    case $platform in
      linux-amd64 | linux-arm64 | darwin-amd64 | darwin-arm64)
        say "  a release's $archive, with SHA256SUMS beside it:"
        say "    HELM_DRIFT_ARCHIVE=/path/to/$archive HELM_PLUGIN_DIR='$plugin' sh '$plugin/install-binary.sh'"
        ;;
      *) say "  (releases are for Linux and macOS, on amd64 and arm64)" ;;
    esac
    if [ -f "$plugin/Cargo.toml" ]; then
      say "  a build from source, with Rust:"
      say "    (cd '$plugin' && cargo build --release && sh ./install-binary.sh)"
    fi
    exit 1
  fi
fi
say "drift $version is ready: helm drift --help"
