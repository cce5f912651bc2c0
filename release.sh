#!/usr/bin/env bash
# Makes a release in dist/ (or $DIST): archives for Helm, kubectl and krew, their sums, krew's manifest and a bill of materials.
# Two runs give the same bytes, from whatever folder, with the same Rust, C compiler, tar and gzip.
#
# usage: release.sh VERSION                                builds for each platform that this machine can build for, and packs it
#        release.sh --build VERSION [PLATFORM]...          builds alone: dist/bin/PLATFORM/drift
#        release.sh --pack VERSION [PLATFORM=BINARY]...    packs alone; where none is named, what is below dist/bin
#        release.sh --platform                             says this machine's
#
# Platforms: linux-amd64, linux-arm64 (static, with musl; on the other one of the two also a cross compiler), darwin-amd64,
# darwin-arm64 (on macOS). VERSION is that of Cargo.toml. The address that the files will be released at, https://HOST/OWNER/NAME,
# stands in Cargo.toml as `repository`; before it counts $DRIFT_REPOSITORY, after it GitHub's own variables and git's remote `origin`.
set -euo pipefail
export LC_ALL=C # one order of names everywhere
unset TAR_OPTIONS GZIP
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() { sed -n 's/^# \{0,1\}//; 2,12p' "${BASH_SOURCE[0]}" >&2; exit 2; }
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
say() { printf 'release: %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

platforms="linux-amd64 linux-arm64 darwin-amd64 darwin-arm64"
here=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/^x86_64$/amd64/; s/^aarch64$/arm64/')

mode=all
case ${1:-} in
  --platform) echo "$here"; exit ;;
  --build | --pack) mode=${1#--}; shift ;;
esac
version=${1:-}
version=${version#v}
[[ $version =~ ^[0-9] ]] || usage
shift

ours=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
[ "$version" = "$ours" ] || fail "this is version $ours: Cargo.toml, plugin.yaml and krew/drift.yaml say which"
dist=${DIST:-$PWD/dist}
[[ $dist == /* ]] || dist=$caller/$dist
mkdir -p "$dist"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
: >"$scratch/notes"
note() { printf -- '- %s\n' "$*" >>"$scratch/notes"; }

# The time that stands in the archives: that of the commit.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) || fail "no git history here: set SOURCE_DATE_EPOCH to the release's time in seconds"
  [ -z "$(git status --porcelain --untracked-files=no)" ] || note "the work tree has changes that are not committed"
fi
export SOURCE_DATE_EPOCH

# target PLATFORM: Rust's name for it
target() {
  case $1 in
    linux-amd64) echo x86_64-unknown-linux-musl ;;
    linux-arm64) echo aarch64-unknown-linux-musl ;;
    darwin-amd64) echo x86_64-apple-darwin ;;
    darwin-arm64) echo aarch64-apple-darwin ;;
    *) fail "no such platform: $1" ;;
  esac
}

# compiler PLATFORM: the C compiler that builds and links for it here, or nothing
compiler() {
  local name
  case $here/$1 in
    linux-amd64/linux-amd64 | linux-arm64/linux-arm64) name="musl-gcc cc" ;;
    linux-*/linux-amd64) name="x86_64-linux-gnu-gcc" ;;
    linux-*/linux-arm64) name="aarch64-linux-gnu-gcc" ;;
    darwin-*/darwin-*) name="cc" ;;
    *) return 0 ;;
  esac
  for name in $name; do
    if has "$name"; then echo "$name"; return; fi
  done
}

installed() { [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]; }

# build PLATFORM: dist/bin/PLATFORM/drift, or a note of why not
build() {
  local target cc flags variable folder place
  target=$(target "$1")
  cc=$(compiler "$1")
  if [ -z "$cc" ]; then
    case $here/$1 in
      linux-*/linux-*) note "$1 is not built: no cross compiler (Debian: gcc-$([ "$1" = linux-arm64 ] && echo aarch64 || echo x86-64)-linux-gnu)" ;;
      *) note "$1 is not built: that takes a ${1%-*} machine" ;;
    esac
    return
  fi
  flags=()
  if ! installed "$target"; then
    if [ "$1" != "$here" ] || [ "${1%-*}" != linux ]; then
      note "$1 is not built: rustup target add $target"
      return
    fi
    note "$1 is static with glibc, not musl, as Rust's target $target is not installed (rustup target add $target): where a host name is resolved by other means than DNS and /etc/hosts, it needs this machine's glibc"
    target=${target%-musl}-gnu
    cc=cc
    flags=(-C target-feature=+crt-static)
  fi
  say "building $1 ($target)"
  variable=$(tr 'a-z-' 'A-Z_' <<<"$target")
  # musl's own linker wrapper adds start-up files that Rust brings itself: Rust's default linker serves where this is the machine's own.
  [ "$1" = "$here" ] || export "CARGO_TARGET_${variable}_LINKER=$cc"
  export "CC_${target//-/_}=$cc"
  folder=$(cargo metadata --locked --no-deps --format-version 1 | jq -r .target_directory)
  # Nothing of this machine's folders stands in the program; the last prefix that fits counts.
  flags+=("--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" "--remap-path-prefix=$PWD=helm-drift" "--remap-path-prefix=$folder=target")
  # Between flags stands a byte that no folder's name has.
  CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; printf '%s' "${flags[*]}") CARGO_INCREMENTAL=0 cargo build --release --locked --target "$target"
  mkdir -p "$dist/bin/$1"
  install -m 755 "$folder/$target/release/drift" "$dist/bin/$1/drift"
  for place in "$PWD" "$folder" "$HOME" "${CARGO_HOME:-$HOME}"; do
    # A home of `/` or `/root` is a part of other words.
    case $place in /*/*) ;; *) place+=/ ;; esac
    if [ "$place" != / ] && LC_ALL=C grep -aqF "$place" "$dist/bin/$1/drift"; then fail "$1 has this machine's folders in it: $place"; fi
  done
  if [ "${1%-*}" = linux ] && has readelf && readelf -dl "$dist/bin/$1/drift" | grep -Eq 'NEEDED|INTERP'; then
    fail "$1 is not static: $(readelf -dl "$dist/bin/$1/drift" | grep -E 'NEEDED|INTERP')"
  fi
}

# archive FILE FOLDER NAME...: sorted, owned by nobody, of one time
archive() {
  (
    cd "$2"
    $tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "${@:3}"
  ) | gzip -n -9 >"$scratch/archive"
  mv "$scratch/archive" "$1"
}

# pack PLATFORM BINARY: two archives. Helm 4 looks for drift/plugin.yaml, as does a person who unpacks; krew takes what it is told from
# there. Helm 3 wants plugin.yaml at the root when it installs from an address. Helm names the plugin's folder by what is before -VERSION.
pack() {
  local stage=$scratch/$1
  [ -f "$2" ] || fail "no such file: $2"
  rm -rf "$stage"
  (umask 022; mkdir -p "$stage/drift/bin")
  install -m 755 "$2" "$stage/drift/bin/drift"
  install -m 755 install-binary.sh plugin.complete "$stage/drift"
  install -m 644 plugin.yaml LICENSE README.md CHANGELOG.md "$stage/drift"
  archive "$dist/drift-$version-$1.tgz" "$stage" drift
  archive "$dist/drift-$version-$1-helm3.tgz" "$stage/drift" $(ls "$stage/drift")
}

# repository: the address that the files are released at, or nothing
repository() {
  local address
  address=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
  address=${DRIFT_REPOSITORY:-${address:-${GITHUB_REPOSITORY:+${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY}}}
  [ -n "$address" ] || address=$(git remote get-url origin 2>/dev/null || true)
  # git's own way to write user and host, as in git@HOST:OWNER/NAME.git
  address=$(sed -E 's,^(ssh://)?git@([^:/]+)[:/],https://\2/,; s,/$,,; s,\.git$,,' <<<"$address")
  case $address in https://*) echo "$address" ;; esac
}

# krew's manifest: the address, the sums, and only platforms that there is an archive for
manifest() {
  local sums platform address
  address=$(repository)
  [ -n "$address" ] || note "drift.yaml has no addresses, and krew takes it with --archive alone: DRIFT_REPOSITORY says where the files will be released"
  sums=
  for platform in $platforms; do
    [ -f "$dist/drift-$version-$platform.tgz" ] && sums+="$platform $($sha256 "$dist/drift-$version-$platform.tgz" | cut -d' ' -f1) "
  done
  awk -v address="$address" -v sums="$sums" '
    # A line with the address: without one no homepage is named, and of a file its name.
    function out(line,  at, rest) {
      at = index(line, "$REPOSITORY")
      rest = substr(line, at + length("$REPOSITORY"))
      if (!at) print line
      else if (address != "") print substr(line, 1, at - 1) address rest
      else if (rest ~ /\//) { sub(/.*\//, "", rest); print substr(line, 1, at - 1) rest }
    }
    function flush(  i, platform) {
      platform = ""
      for (i = 1; i <= n; i++) if (match(block[i], /linux-[a-z0-9]+\.tgz|darwin-[a-z0-9]+\.tgz/)) platform = substr(block[i], RSTART, RLENGTH - 4)
      if (platform in sum) for (i = 1; i <= n; i++) { if (block[i] ~ /^      sha256: /) block[i] = "      sha256: " sum[platform]; out(block[i]) }
      n = 0
    }
    BEGIN { count = split(sums, word, " "); for (i = 1; i < count; i += 2) sum[word[i]] = word[i + 1] }
    /^#/ { next }
    /^    - selector:/ { flush(); inside = 1 }
    inside { block[++n] = $0; next }
    { out($0) }
    END { flush() }
  ' krew/drift.yaml >"$dist/drift.yaml"
}

# What the program is made of, as CycloneDX: every crate that is compiled into it on some platform, with its licence and sum.
materials() {
  awk '/^name = /{name = $3} /^version = /{version = $3} /^checksum = /{gsub(/"/, "", name); gsub(/"/, "", version); gsub(/"/, ""); print name "@" version, $3}' Cargo.lock |
    jq -Rn '[inputs | split(" ") | {key: .[0], value: .[1]}] | from_entries' >"$scratch/sums.json"
  # Licences of crates whose manifest states none are in deny.toml.
  awk '/^crate = /{gsub(/"/, ""); name = $3} /^expression = /{gsub(/"/, ""); print name, $3}' deny.toml |
    jq -Rn '[inputs | split(" ") | {key: .[0], value: .[1]}] | from_entries' >"$scratch/stated.json"
  cargo metadata --locked --format-version 1 | jq -S --slurpfile sums "$scratch/sums.json" --slurpfile stated "$scratch/stated.json" --arg time "$(jq -nr "$SOURCE_DATE_EPOCH | todate")" '
    (.packages | map({key: .id, value: .}) | from_entries) as $packages
    | (.resolve.nodes | map({key: .id, value: [.deps[] | select(any(.dep_kinds[]; .kind == null or .kind == "build")) | .pkg]}) | from_entries) as $uses
    | .resolve.root as $root
    | {seen: {}, next: [$root]}
    | until(.next == []; reduce .next[] as $id ({seen: .seen, next: []};
        if .seen[$id] then . else .seen[$id] = true | .next += $uses[$id] end))
    | [.seen | keys[] | select(. != $root) | $packages[.]] | sort_by(.name, .version)
    | {
        bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
        metadata: {timestamp: $time, component: ($packages[$root] | {type: "application", name, version, "bom-ref": "pkg:cargo/\(.name)@\(.version)", licenses: [{expression: .license}]})},
        components: map({
          type: "library", name, version, "bom-ref": "pkg:cargo/\(.name)@\(.version)", purl: "pkg:cargo/\(.name)@\(.version)",
          licenses: ((.license // $stated[0][.name]) | if . then [{expression: gsub(" */ *"; " OR ")}] else [] end),
          hashes: ($sums[0]["\(.name)@\(.version)"] // null | if . then [{alg: "SHA-256", content: .}] else [] end),
        })
      }' >"$dist/drift-$version.cdx.json"
}

for tool in cargo rustc jq; do has "$tool" || fail "missing: $tool"; done
if [ "$mode" = all ]; then rm -rf "$dist/bin"; fi
if [ "$mode" != pack ]; then
  chosen=$platforms
  [ "$mode" = all ] || [ $# = 0 ] || chosen=$*
  for platform in $chosen; do build "$platform"; done
fi
if [ "$mode" != build ]; then
  tar=tar
  if has gtar; then tar=gtar; fi
  $tar --version 2>/dev/null | grep -q GNU || fail "missing: GNU tar (macOS: brew install gnu-tar)"
  sha256=sha256sum
  has sha256sum || sha256="shasum -a 256"
  rm -f "$dist"/drift-*.tgz "$dist"/drift-*.cdx.json "$dist/drift.yaml" "$dist/SHA256SUMS"
  packed=0
  if [ "$mode" = pack ] && [ $# -gt 0 ]; then
    for pair in "$@"; do
      binary=${pair#*=}
      [[ $binary == /* ]] || binary=$caller/$binary
      target "${pair%%=*}" >/dev/null
      pack "${pair%%=*}" "$binary"
      packed=$((packed + 1))
    done
  else
    for platform in $platforms; do
      [ -f "$dist/bin/$platform/drift" ] || continue
      pack "$platform" "$dist/bin/$platform/drift"
      packed=$((packed + 1))
    done
  fi
  [ $packed -gt 0 ] || { cat "$scratch/notes" >&2; fail "no binary to pack"; }
  manifest
  materials
  (cd "$dist" && $sha256 drift-* drift.yaml >SHA256SUMS)
  say "made $version in $dist:"
  (cd "$dist" && wc -c drift-* drift.yaml SHA256SUMS | sed '$d') >&2
fi
[ ! -s "$scratch/notes" ] || { say "note:"; cat "$scratch/notes" >&2; }
